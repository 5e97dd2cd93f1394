// Wide formulas, outputs and tables scroll sideways: the keyboard must reach them, but only while they do.
const REGIONS = "mjx-container[display], .cell_output .text_html, .pst-scrollable-table-container, .operations table";

function update() {
  for (const region of document.querySelectorAll(REGIONS)) {
    const scrolls = region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight;
    if (scrolls) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  }
}

addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  update();
});
addEventListener("resize", update);
