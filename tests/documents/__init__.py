"""The five design documents to the letter: what they name exists, and their examples run."""
