// Finds sections with Pagefind, word by word. Pagefind by itself answers with pages that hold every word asked for.
// But of an error's line many words stand on no page: names and numbers of a reader's own run. And where words are not
// separated by spaces, the index and the browser disagree on where words end (変わり|ませ|ん against 変わり|ま|せん).
// So a section ranks by the rare words that it holds, and in such a language first by how much of the phrase.
// What the glossary explains, it answers first.
const SPACELESS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
const MEANING = /[\p{Script=Han}\p{Script=Katakana}ー]+|[\p{Script=Latin}\p{N}_]+(?:-[\p{Script=Latin}\p{N}_]+)*/gu;
const NAMES = /[,、，（）]\s*|\s+(?:and|\/)\s+|と(?=[\p{Script=Han}\p{Script=Katakana}])/u; // between the names of one glossary entry
const LONG_END = /(?<=[ァ-ヺ][ァ-ヺー]*[ァ-ヺ])ー(?![ァ-ヺー])/gu; // メモリー is メモリ to many, サーバー is サーバ
const ENOUGH = 0.6;
const MOST_WORDS = 20; // of a pasted error the first
const RAREST = 8; // of these, as the browser takes 5 ms for each page that holds a word
const COMMON = 3; // so that one word that a single page holds does not outweigh all others
const IN_TITLE = 1.5; // as much as this counts a word that the section's title holds
const ALL_IN_TITLE = 2; // and a section whose title holds all that is asked for
const AT_TOP = 0.6; // and a word at the top of a page, which may be one long table
const SHOWN = 30; // words of an entry of the glossary

/** Returns the best section of each page found, the best first: `url`, `title` and `excerpt`. */
export async function findPages(index, query, language, glossary) {
  const entry = glossary && glossaryEntry(glossary, query);
  const found = await ranked(index, query, language);
  return entry ? [entry, ...found.filter((page) => page.url.split("#")[0] !== entry.url.split("#")[0])] : found;
}

async function ranked(index, query, language) {
  const pages = [...(await pagesWithAnyWord(index, query, words(query, language))).values()].filter((page) => page.best);
  const byWords = (one, other) => other.best.score - one.best.score || other.score - one.score;
  if (!SPACELESS.test(query)) return pages.sort(byWords).map((page) => page.best);
  const held = pages.map((page) => ({ ...page, held: heldShare(squeeze(query), squeeze(page.content)) }));
  const share = (page) => (page.held >= ENOUGH ? page.held : 0);
  return held.sort((one, other) => share(other) - share(one) || byWords(one, other)).map((page) => page.best);
}

/** Returns the words of a query that carry meaning: without particles and endings, where there is anything else. */
export function words(query, language) {
  const parts = SPACELESS.test(query)
    ? [...new Intl.Segmenter(language, { granularity: "word" }).segment(query)].map(({ segment }) => segment)
    : [query];
  const meaning = parts.flatMap((part) => part.match(MEANING) ?? []);
  return [...new Set(meaning.length ? meaning : [query])].slice(0, MOST_WORDS);
}

async function pagesWithAnyWord(index, query, asked) {
  const pages = new Map();
  const held = await Promise.all(asked.map(async (word) => ({ word, results: await holding(index, word) })));
  const rarest = held.filter(({ results }) => results.length).sort((one, other) => one.results.length - other.results.length);
  for (const { word, results } of rarest.slice(0, RAREST)) {
    const weight = 1 / (COMMON + results.length); // a rare word says more
    for (const result of results) {
      const data = await result.data();
      const page = pages.get(data.url) ?? { ...data, score: 0, sections: new Map() };
      pages.set(data.url, page);
      page.score += weight * result.score;
      for (const section of data.sub_results) {
        if (!isMeant(word, section.excerpt)) continue;
        const title = section.title.toLowerCase();
        const named = spellings(word).some((each) => title.includes(each.toLowerCase())) ? IN_TITLE : 1;
        const held = weight * named * (section.title === data.meta.title ? AT_TOP : 1);
        page.sections.set(section.url, (page.sections.get(section.url) ?? 0) + held);
        const score = page.sections.get(section.url) * (title.includes(query.toLowerCase()) ? ALL_IN_TITLE : 1);
        if ((page.best?.score ?? 0) < score) page.best = { ...listed(section, data), score };
      }
    }
  }
  return pages;
}

/** Returns Pagefind's results for a word in either spelling: normalization, normalisation. */
async function holding(index, word) {
  const found = new Map();
  for (const each of spellings(word)) {
    for (const result of (await index.search(each)).results) if (!found.has(result.id)) found.set(result.id, result);
  }
  return [...found.values()];
}

function spellings(word) {
  return [...new Set([word, word.replace(/iz(?=[aei])/, "is"), word.replace(/is(?=ation|ing|ed$)/, "iz")])];
}

/** Pagefind takes a word that it does not know for its longest known beginning: MFU for M. */
function isMeant(word, excerpt) {
  const marked = [...excerpt.matchAll(/<mark>(.*?)<\/mark>/g)].map(([, mark]) => mark.toLowerCase());
  const beginnings = spellings(word).map((each) => each.toLowerCase().slice(0, Math.max(3, Math.ceil(word.length * ENOUGH))));
  return beginnings.some((beginning) => marked.some((mark) => mark.includes(beginning)));
}

/** Returns a section as it is listed. */
function listed(section, page) {
  const isTop = section.title === page.meta.title;
  return { url: isTop ? page.url : section.url, title: isTop ? section.title : `${page.meta.title}: ${section.title}`, excerpt: section.excerpt };
}

/** Returns the entry of a glossary's page that explains what is asked for, if there is one. */
function glossaryEntry(glossary, query) {
  const asked = spellings(query).map(plain).filter((name) => name);
  const terms = [...glossary.querySelectorAll("dt[id]")];
  const term = terms.find((each) => each.textContent.split(NAMES).some((name) => asked.includes(plain(name))))
    ?? terms.find((each) => [...each.nextElementSibling.querySelectorAll("em, strong")].some((name) => asked.includes(plain(name.textContent))));
  if (!term) return undefined;
  const title = glossary.querySelector("h1").firstChild.textContent;
  return { url: `${glossary.address}#${term.id}`, title: `${title}: ${term.textContent}`, excerpt: shortened(term.nextElementSibling.textContent) };
}

function plain(name) {
  return squeeze(name).replace(/-|(?:(?<=[cs]h)e)?s$/g, ""); // micro-batch, microbatch, micro-batches
}

function shortened(text) {
  const spoken = text.trim().split(/\s+/);
  const start = spoken.slice(0, SHOWN).join(" ");
  const shown = document.createElement("span");
  shown.textContent = spoken.length > SHOWN ? `${start} …` : start;
  return shown.innerHTML; // escaped, as Pagefind's excerpts are
}

/** Returns how much of the phrase's beginning a text holds: 足し合わせる is held to 5/6 by 足し合わせます. */
export function heldShare(phrase, text) {
  let length = phrase.length;
  while (length && !text.includes(phrase.slice(0, length))) length -= 1;
  return length / phrase.length;
}

function squeeze(text) {
  return text.normalize("NFKC").toLowerCase().replace(/[\s\u200b。、.,]+/gu, "").replace(LONG_END, "");
}
