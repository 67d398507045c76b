// Making and changing elements of the page without asking for more work than there is.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes and children (elements or texts). */
export function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

/** The text of an element, written only where it differs. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** An attribute, written only where it differs. */
export function mark(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/**
 * The children of `parent` made to be one per item, in order: `make(item)` builds one that is missing,
 * `fill(child, item)` brings one up to date. A child stays the same element as long as its key does, with
 * the focus it may have.
 */
export function keyed(parent, items, keyOf, make, fill) {
  const known = new Map([...parent.children].map(child => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = known.get(key);
    known.delete(key);
    if (child === undefined) {
      child = make(item);
      child.dataset.key = key;
    }
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
    fill(child, item);
  }
  for (const child of known.values()) child.remove();
}
