// Keeps the focus of the keyboard: what has it may go, be switched off or be hidden while the page is brought up to
// date, and a reader without a pointer must not be thrown back to the top of the page.

/**
 * Do `work`; where the focus was on something that can no longer have it, give it to the nearest part around it that
 * says which of its elements stands for it (`data-home`, a selector), or to that part itself.
 */
export function keepingFocus(work) {
  const had = document.activeElement;
  if (had === null || had === document.body) return work();
  const around = [];
  for (let element = had.parentElement; element; element = element.parentElement)
    if (element.dataset.home) around.push(element);
  const done = work();
  if (!holds(had)) homeOf(around)?.focus({ preventScroll: true });
  return done;
}

const holds = element => element.isConnected && !element.disabled && element.checkVisibility();

function homeOf(around) {
  for (const element of around) {
    const home = element.querySelector(element.dataset.home);
    if (home && holds(home)) return home;
  }
  return null;
}
