"""The store conformance suite, shipped so that any store can prove itself."""
