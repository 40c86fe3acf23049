"""The registered environments; a folder each."""
