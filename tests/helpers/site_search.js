// Runs the search of a built site: node site_search.js SITE < questions (a JSON list); prints for each the results, best first.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const site = process.argv[2];
const questions = JSON.parse(fs.readFileSync(0, "utf8"));
const element = { classList: { add() {}, remove() {} }, addEventListener() {}, hasChildNodes: () => false };
const read = (name) => fs.readFileSync(path.join(site, name), "utf8");

const answers = questions.map((question) => {
  const location = { search: "?" + new URLSearchParams({ q: question }), hash: "" };
  const window = { location, addEventListener() {} };
  const document = {
    readyState: "loading", documentElement: { dataset: { content_root: "./" } }, addEventListener() {},
    getElementById: () => null, querySelectorAll: () => [], createElement: () => element,
  };
  const storage = { setItem() {}, getItem: () => null, removeItem() {} };
  const context = vm.createContext({ window, document, location, localStorage: storage, URLSearchParams, URL, console, setTimeout });
  for (const name of ["documentation_options.js", "doctools.js", "sphinx_highlight.js", "language_data.js", "searchtools.js"]) {
    vm.runInContext(read(path.join("_static", name)), context);
    if (context.window.Stemmer) context.Stemmer = context.window.Stemmer;
  }
  vm.runInContext(read("searchindex.js"), context);
  const asked = `Search._performSearch(...Search._parseQuery(${JSON.stringify(question)})).reverse()`;
  return vm.runInContext(asked, context).map(([page, title, anchor, , score]) => ({ page, title, anchor, score }));
});
console.log(JSON.stringify(answers));
