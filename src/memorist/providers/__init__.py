"""Models of chats and embeddings, tokenizers, images and the HTTP client that calls servers."""
