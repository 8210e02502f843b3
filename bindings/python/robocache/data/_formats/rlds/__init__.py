"""RLDS: episodes in TFRecord files, as TensorFlow Datasets stores them."""
