"""Writers of data sets, episode by episode."""
