#!/usr/bin/env python3
"""Find passwords, keys and tokens in files: find_secrets.py FILE... (exit status 1 if any).

detect-secrets does this, but it calls each of its 27 plugins for each line, which takes 50 s for
this repository. Here the plugins first search whole files, and detect-secrets gets only those
files in which one of them finds something.
"""

import re
import sys
from pathlib import Path

from detect_secrets.core.plugins import initialize
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin
from detect_secrets.plugins.keyword import DENYLIST, KeywordDetector
from detect_secrets.pre_commit_hook import main
from detect_secrets.settings import default_settings

# In these, detect-secrets also looks at strings without quotes.
UNQUOTED = {".cfg", ".conf", ".config", ".ini", ".properties", ".yaml", ".yml"}


class Suspicion:
    """Whether a plugin may find something in a file."""

    def __init__(self):
        with default_settings():
            classes = get_mapping_from_secret_type_to_class().values()
            plugins = [initialize.from_plugin_classname(each.__name__) for each in classes]
        self.patterns = [re.compile("|".join(DENYLIST), re.IGNORECASE)]  # of KeywordDetector
        self.entropies = []
        for plugin in plugins:
            if isinstance(plugin, HighEntropyStringsPlugin):
                self.entropies.append(plugin)
            elif not isinstance(plugin, KeywordDetector):
                # Lines begin and end as they do for a plugin that gets one at a time.
                self.patterns += (re.compile(p.pattern, p.flags | re.M) for p in plugin.denylist)

    def of(self, path):
        if path.suffix in UNQUOTED or not path.is_file():
            return True
        text = path.read_text("utf-8", errors="replace")
        return any(pattern.search(text) for pattern in self.patterns) or any(
            plugin.calculate_shannon_entropy(string) > plugin.entropy_limit
            for plugin in self.entropies
            for string in plugin.analyze_string(text)
        )


def suspicious(names):
    suspicion = Suspicion()
    return [name for name in names if suspicion.of(Path(name))]


if __name__ == "__main__":
    sys.exit(main(suspicious(sys.argv[1:])))
