"""The JSON Schemas of `docs/schema`, made from the types that read and write the data."""
