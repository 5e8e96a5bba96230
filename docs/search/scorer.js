// Sphinx's scores; among equals, pages that tell how come first, and the changelog last.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: (result) => result[4] + (result[0].startsWith("howto/") ? 2 : result[0].endsWith("changelog") ? -2 : 0),
};
