// How the search ranks its results. Sphinx puts this in front of its own search code. Pages that
// explain come first, then the pages of the reference, then single members of the API.
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const query = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().trim();
    // Only objects have a description: members of the API, and terms of the glossary.
    if (description !== null) return page === "glossary" ? score + 20 : score;
    // Sphinx ignores punctuation, so it takes "C" and "C++" for the same.
    if (query && title.toLowerCase().includes(query)) score += 6;
    if (/^(install|support|from-loops|quickstart\/)/.test(page)) return score + 5;
    if (/^(concepts\/|glossary|deploy|performance\/figures)/.test(page)) return score + 4;
    if (/^(api\/|performance\/experiments)/.test(page)) return score - 4;
    return score;
  },
  objNameMatch: 4, // the whole name of a member
  objPartialMatch: 1,
  objPrio: { 0: 1, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
