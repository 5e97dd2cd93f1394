// Which predictions the reader made, and which were right at first: kept in this browser, shown on the home page.
const NAME = "course-predictions";

function kept() {
  try { return JSON.parse(localStorage.getItem(NAME)) ?? {}; } catch { return {}; } // it may be forbidden
}

document.addEventListener("course-predicted", ({ detail: { id, right } }) => {
  const made = kept();
  if (id in made) return; // the first answer counts
  try { localStorage.setItem(NAME, JSON.stringify({ ...made, [id]: right })); } catch { /* then nothing is kept */ }
});

for (const shown of document.querySelectorAll("[data-progress]")) {
  const { progress, lesson, predictions } = shown.dataset;
  const made = Object.keys(kept()).filter((id) => id.startsWith(`${lesson}-`)).length;
  if (made) shown.textContent = progress.replace("{made}", made).replace("{all}", predictions);
}
