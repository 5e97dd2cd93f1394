// Finds sections with Pagefind, word by word. Pagefind by itself answers with pages that hold every word asked for.
// But of an error's line many words stand on no page: names and numbers of a reader's own run. And where words are not
// separated by spaces, the index and the browser disagree on where words end (変わり|ませ|ん against 変わり|ま|せん).
// So a section ranks by the rare words that it holds, and in such a language first by how much of the phrase.
const SPACELESS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
const MEANING = /[\p{Script=Han}\p{Script=Katakana}ー]+|[\p{Script=Latin}\p{N}_]+/gu;
const ENOUGH = 0.6;
const MOST_WORDS = 20; // of a pasted error the first
const IN_TITLE = 1.5; // as much as this counts a word that the section's title holds
const AT_TOP = 0.6; // and a word at the top of a page, which may be one long table

/** Returns the best section of each page found, the best first: `url`, `title` and `excerpt`. */
export async function findPages(index, query, language) {
  const pages = [...(await pagesWithAnyWord(index, words(query, language))).values()];
  const byWords = (one, other) => other.best.score - one.best.score || other.score - one.score;
  if (!SPACELESS.test(query)) return pages.sort(byWords).map((page) => page.best);
  const ranked = pages.map((page) => ({ ...page, held: heldShare(squeeze(query), squeeze(page.content)) }));
  const phrases = ranked.filter((page) => page.held >= ENOUGH).sort((one, other) => other.held - one.held || byWords(one, other));
  return (phrases.length ? phrases : ranked.sort(byWords)).map((page) => page.best);
}

/** Returns the words of a query that carry meaning: without particles and endings, where there is anything else. */
export function words(query, language) {
  const segments = [...new Intl.Segmenter(language, { granularity: "word" }).segment(query)];
  const meaning = segments.flatMap(({ segment }) => segment.match(MEANING) ?? []);
  return [...new Set(meaning.length ? meaning : [query])].slice(0, MOST_WORDS);
}

async function pagesWithAnyWord(index, asked) {
  const pages = new Map();
  for (const word of asked) {
    const { results } = await index.search(word);
    const weight = 1 / (1 + results.length); // a rare word says more
    for (const result of results) {
      const data = await result.data();
      const page = pages.get(data.url) ?? { ...data, score: 0, sections: new Map() };
      pages.set(data.url, page);
      page.score += weight * result.score;
      for (const section of data.sub_results) {
        const held = weight * (section.title.toLowerCase().includes(word.toLowerCase()) ? IN_TITLE : 1) * (section.title === data.meta.title ? AT_TOP : 1);
        page.sections.set(section.url, (page.sections.get(section.url) ?? 0) + held);
        if ((page.best?.score ?? 0) < page.sections.get(section.url)) page.best = { ...named(section, data), score: page.sections.get(section.url) };
      }
    }
  }
  return pages;
}

/** Returns a section as it is listed. */
function named(section, page) {
  const isTop = section.title === page.meta.title;
  return { url: isTop ? page.url : section.url, title: isTop ? section.title : `${page.meta.title}: ${section.title}`, excerpt: section.excerpt };
}

/** Returns how much of the phrase's beginning a text holds: 足し合わせる is held to 5/6 by 足し合わせます. */
export function heldShare(phrase, text) {
  let length = phrase.length;
  while (length && !text.includes(phrase.slice(0, length))) length -= 1;
  return length / phrase.length;
}

function squeeze(text) {
  return text.normalize("NFKC").toLowerCase().replace(/[\s\u200b。、.,]+/gu, "");
}
