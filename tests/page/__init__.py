"""The live map's page in a real browser."""
