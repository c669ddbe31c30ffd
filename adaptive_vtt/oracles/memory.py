"""What an oracle's details teach an audit beyond the loss: for predictions and strategies."""
