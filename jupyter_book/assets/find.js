// Finds pages with Pagefind. Where words are not separated by spaces, the index and the browser disagree on where
// words end (変わり|ませ|ん against 変わり|ま|せん), and Pagefind wants every word: a phrase that stands on a page may
// not be found. There, this asks for the words that carry meaning one by one, and ranks by how much of the phrase a
// page really holds.
const SPACELESS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
const MEANING = /[\p{Script=Han}\p{Script=Katakana}ー]+|[\p{Script=Latin}\p{N}]+/gu;
const ENOUGH = 0.6;

/** Returns Pagefind's record of each page found, the best first. */
export async function findPages(index, query, language) {
  if (!SPACELESS.test(query)) {
    const { results } = await index.search(query);
    return Promise.all(results.map((result) => result.data()));
  }
  const pages = await pagesWithAnyWord(index, words(query, language));
  const ranked = pages.map((page) => ({ ...page, held: heldShare(squeeze(query), squeeze(page.content)) }));
  ranked.sort((one, other) => other.held - one.held || other.matched - one.matched || other.score - one.score);
  const most = Math.max(...ranked.map((page) => page.matched));
  const phrase = ranked[0]?.held >= ENOUGH;
  return ranked.filter((page) => (phrase ? page.held >= ENOUGH || page.held === ranked[0].held : page.matched === most));
}

/** Returns the words of a query that carry meaning: without particles and endings, where there is anything else. */
export function words(query, language) {
  const segments = [...new Intl.Segmenter(language, { granularity: "word" }).segment(query)];
  const meaning = segments.flatMap(({ segment }) => segment.match(MEANING) ?? []);
  return [...new Set(meaning.length ? meaning : [query])];
}

async function pagesWithAnyWord(index, asked) {
  const pages = new Map();
  for (const word of asked) {
    const { results } = await index.search(word);
    for (const result of results) {
      const known = pages.get(result.id);
      if (known) {
        known.matched += 1;
        known.score += result.score;
      } else {
        pages.set(result.id, { ...(await result.data()), matched: 1, score: result.score });
      }
    }
  }
  return [...pages.values()];
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
