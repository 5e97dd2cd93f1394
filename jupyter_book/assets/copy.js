// A button on each piece of code that copies it.
const words = document.querySelector("script[data-copy]").dataset;

export function addButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-button";
  button.textContent = words.copy;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("pre").textContent.trimEnd());
    button.textContent = words.copied;
    setTimeout(() => { button.textContent = words.copy; }, 2000);
  });
  block.append(button);
}

if (navigator.clipboard) {
  document.querySelectorAll(".cell_input .highlight, div[class*='highlight-']:not(.cell_output *) > .highlight").forEach(addButton);
}
