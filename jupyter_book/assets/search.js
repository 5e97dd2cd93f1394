// Search as you type, in the page's language: in a dialog on every page (Ctrl+K or the search buttons) and on the
// search page. Pagefind's index is fetched with the first letter typed, not before.
import { findPages } from "./find.js";

const site = new URL("../", import.meta.url);
const WAIT_MS = 120;
const MOST_RESULTS = 12;
let index;
let glossary;

async function pagefind() {
  if (!index) {
    index = await import(new URL("pagefind/pagefind.js", site));
    await index.options({ baseUrl: site.pathname, excerptLength: 24 });
    await index.init();
  }
  return index;
}

/** The page that explains words, in the page's language; `undefined` where a course has none. */
async function fetchGlossary() {
  const address = new URL(`${document.documentElement.lang}/glossary.html`, site);
  const answer = await fetch(address);
  if (!answer.ok) return undefined;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return Object.assign(page, { address: address.pathname });
}

function showResult(page) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = page.url;
  link.textContent = page.title;
  const excerpt = document.createElement("p");
  excerpt.innerHTML = page.excerpt; // Pagefind's own: escaped text with <mark> around the words found
  item.append(link, excerpt);
  return item;
}

function connect(container) {
  const input = container.querySelector("input");
  const status = container.querySelector(".search-status");
  const list = container.querySelector(".search-results");
  let latest = 0;

  async function find() {
    const mine = ++latest;
    const query = input.value.trim();
    if (!query) {
      status.textContent = "";
      list.replaceChildren();
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    if (mine !== latest) return; // another letter was typed meanwhile
    try {
      glossary ??= fetchGlossary();
      const pages = await findPages(await pagefind(), query, document.documentElement.lang, await glossary);
      if (mine !== latest) return;
      const text = pages.length ? container.dataset.some : container.dataset.none;
      status.textContent = text.replace("{count}", pages.length).replace("{query}", query);
      list.replaceChildren(...pages.slice(0, MOST_RESULTS).map(showResult));
    } catch (error) {
      status.textContent = container.dataset.broken;
      throw error;
    }
  }

  input.addEventListener("input", find);
  container.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    find();
  });
  return find;
}

const dialog = document.querySelector("#search-dialog");

function openDialog(event) {
  event.preventDefault();
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("input").select();
}

for (const opener of document.querySelectorAll("[data-open-search]")) opener.addEventListener("click", openDialog);
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") openDialog(event);
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

for (const container of document.querySelectorAll("[data-search]")) {
  const find = connect(container);
  const asked = new URLSearchParams(location.search).get("q");
  if (asked && !dialog.contains(container)) {
    container.querySelector("input").value = asked;
    find();
  }
}
