// What is wrong with how the page is laid out, as a list of sentences.
(() => {
  const wrong = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const right = (element) => element.getBoundingClientRect().right;
    const widest = [document.body, ...document.body.querySelectorAll("*")].filter((one) => !one.closest(".scroll")).sort((a, b) => right(b) - right(a))[0];
    wrong.push(`the page is ${root.scrollWidth} wide in ${root.clientWidth}, for <${widest.tagName} class=${widest.className}>`);
  }
  const isShown = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility === "visible";
  for (const plot of document.querySelectorAll(".plot")) {
    const drawings = [...plot.querySelectorAll("svg")].filter(isShown);
    const name = plot.parentElement.querySelector("figcaption").textContent;
    if (drawings.length !== 1) wrong.push(`${drawings.length} drawings are shown of ${name}`);
    for (const drawing of drawings) {
      const place = plot.getBoundingClientRect();
      const scale = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
      const texts = [...drawing.querySelectorAll("text")].filter(isShown).map((text) => ({
        words: text.textContent,
        letters: parseFloat(getComputedStyle(text).fontSize) * scale,
        at: text.getBoundingClientRect(),
      }));
      for (const { words, letters, at } of texts) {
        if (letters < 9.5) wrong.push(`letters of ${letters} pixels: "${words}" in ${name}`);
        if (at.left < place.left - 3 || at.right > place.right + 3) wrong.push(`"${words}" leaves its plot, ${name}`);
        if (at.top < place.top - 4 || at.bottom > place.bottom + 4) wrong.push(`"${words}" leaves its plot, ${name}`);
      }
      texts.forEach((one, index) => {
        for (const other of texts.slice(index + 1)) {
          const across = Math.min(one.at.right, other.at.right) - Math.max(one.at.left, other.at.left);
          const down = Math.min(one.at.bottom, other.at.bottom) - Math.max(one.at.top, other.at.top);
          // Lines of text have room above and below their letters.
          if (across > 1 && down > 4 * scale) wrong.push(`"${one.words}" and "${other.words}" touch in ${name}`);
        }
      });
    }
  }
  for (const element of document.querySelectorAll("button, .badge, span.label, h1, h2, figcaption, dd, .goal, .reached")) {
    if (isShown(element) && element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== "inline") {
      wrong.push(`<${element.tagName} class=${element.className}> is cut: "${element.textContent}"`);
    }
  }
  return wrong;
})()
