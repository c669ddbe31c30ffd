"""The endoscopy phantom's parts: what is in a scene, and how a scene is drawn."""
