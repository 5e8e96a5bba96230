// On a page of its own: model.js makes the views, and the address keeps the state.

{
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAUSE = 100; // milliseconds
  let state = data.start, message = "", writing = 0;

  // Browsers refuse a page that writes its address too often.
  function write() {
    clearTimeout(writing);
    writing = 0;
    history.replaceState(null, "", "#" + encodeURIComponent(JSON.stringify(state)));
  }

  function kept() {
    const text = decodeURIComponent(location.hash.slice(1));
    if (!text) return;
    try {
      state = text.startsWith("format=") ? act(data.start, { do: "format", value: text.slice(7) }, data) : checkState(JSON.parse(text), data);
      message = "";
    } catch (error) {
      message = `The address holds no state: ${error.message}`;
    }
  }

  function send(event) {
    try {
      state = act(state, event, data);
      message = "";
      writing ||= setTimeout(write, PAUSE);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      message = error.message;
    }
    draw(view(state, data), message);
  }

  const draw = mount(document.getElementById("explorer"), send);
  window.addEventListener("pagehide", () => writing && write());
  window.addEventListener("hashchange", () => {
    clearTimeout(writing);
    writing = 0;
    kept();
    draw(view(state, data), message);
  });
  window.softfloatExplorer = { send, state: () => copy(state), view: () => view(state, data), message: () => message };
  kept();
  draw(view(state, data), message);
}
