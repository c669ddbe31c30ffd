"""What the demo runs on: a bundled classifier of clothes, and a chat server that answers by it."""
