// In notebooks: Python makes the views.

export default {
  render({ model, el }) {
    const draw = mount(el, (event) => model.send(event));
    const redraw = () => draw(model.get("view"), model.get("message"));
    model.on("change:view", redraw);
    model.on("change:message", redraw);
    redraw();
    return () => {
      model.off("change:view", redraw);
      model.off("change:message", redraw);
    };
  },
};
