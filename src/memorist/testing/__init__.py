"""For users' tests: chat models that follow a script, and a server that speaks as providers do."""
