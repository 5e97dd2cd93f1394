// A choice in a prediction's card opens what was measured, and why: the folded output of the cell below the card's.
document.addEventListener("course-predicted", ({ target }) => {
  const below = target.closest(".cell")?.nextElementSibling;
  below?.querySelector(":scope > details.revealed")?.setAttribute("open", "");
});
