// Lists what does not fit into the window, or is cut off without a sign of it.
async () => {
  // What follows the size of the window has done so in the next frame.
  for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  const said = [];
  const name = (element) => {
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 60);
    return `<${element.localName} class="${element.getAttribute("class") ?? ""}"> ${text}`;
  };
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) said.push(`the page is ${root.scrollWidth} wide`);
  // The columns of the page scroll; the window around them never does.
  const isTall = root.scrollHeight > root.clientHeight + 1;
  if (isTall && document.querySelector(".shell")) said.push(`the window itself scrolls: ${root.scrollHeight} in ${root.clientHeight}`);
  const scrolls = (element) => {
    for (let up = element; up && up !== document.body; up = up.parentElement) {
      const { overflowX } = getComputedStyle(up);
      if ((overflowX === "auto" || overflowX === "scroll") && up.tabIndex >= 0) return true;
      if ((overflowX === "auto" || overflowX === "scroll") && up.scrollWidth <= up.clientWidth) continue;
      if (overflowX === "auto" || overflowX === "scroll") return up.matches(".table, pre, .command, .scroll-x");
    }
    return false;
  };
  const isClipped = (element) => {
    for (let up = element; up && up !== document.body; up = up.parentElement) {
      if (getComputedStyle(up).overflowX !== "visible" && up.getBoundingClientRect().right <= innerWidth + 1) return true;
    }
    return false;
  };
  for (const element of document.body.querySelectorAll("*")) {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest("svg, .hidden-text, .skip, template, dialog:not([open])")) continue;
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const isBeside = box.right > innerWidth + 1 || box.left < -1;
    if (isBeside && !isClipped(element) && !scrolls(element.parentElement)) {
      said.push(`${name(element)} is beside the window: ${Math.round(box.left)} to ${Math.round(box.right)}`);
    }
    // Scrolls to the side by itself, though nothing of it is made for that.
    const scrollsX = style.overflowX === "auto" || style.overflowX === "scroll";
    if (scrollsX && element.scrollWidth > element.clientWidth + 1 && !element.matches(".table, pre, .command, .scroll-x, textarea")) {
      said.push(`${name(element)} scrolls to the side: ${element.scrollWidth} in ${element.clientWidth}`);
    }
    const texts = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
    if (!texts.length) continue;
    let clip = element;
    while (clip && clip !== document.body && getComputedStyle(clip).overflowX === "visible") clip = clip.parentElement;
    if (!clip || clip === document.body || scrolls(element)) continue;
    const clipStyle = getComputedStyle(clip);
    const range = document.createRange();
    range.setStartBefore(texts[0]);
    range.setEndAfter(texts.at(-1));
    const text = range.getBoundingClientRect();
    const around = clip.getBoundingClientRect();
    // Spaces at the end of a line may hang over its edge.
    const isCut = clip.scrollWidth > clip.clientWidth + 1 && (text.right > around.right + 2 || text.left < around.left - 2);
    if (isCut && clipStyle.textOverflow !== "ellipsis") {
      said.push(`${name(element)} is cut off by ${name(clip).slice(0, 50)}`);
    }
    const cutBelow = clipStyle.overflowY === "hidden" && clipStyle.webkitLineClamp === "none" && text.bottom > around.bottom + 3;
    if (cutBelow) said.push(`${name(element)} is cut off below by ${name(clip).slice(0, 50)}`);
  }
  return [...new Set(said)].slice(0, 20);
}
