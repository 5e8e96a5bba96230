// Sphinx's scores; among equals, titles that have more of the question's words come first, then pages that tell how; the changelog comes last.
// A word of the glossary comes after pages that have it in their title.
const wordsOf = (text) => (text || "").toLowerCase().match(/\w+/g) || [];
const asked = wordsOf(new URLSearchParams(location.search).get("q"));
const alike = (x, y) => x === y || (Math.min(x.length, y.length) > 4 && (x.startsWith(y) || y.startsWith(x)));
const answered = (title) => asked.filter((x) => wordsOf(title).some((y) => alike(x, y))).length / (asked.length || 1);

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: (result) => (result[0] === "glossary" ? Math.min(result[4], 16.5) : result[4]) + 3 * answered(result[1]) + (result[0].startsWith("howto/") ? 2 : result[0].endsWith("changelog") ? -2 : 0),
};
