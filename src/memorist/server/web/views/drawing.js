// What the graph and the timeline are drawn with: their size, wheel, dragging, keys and arrowheads.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../ui.js";

// The width and height of an element; null until it is shown.
export function useSize(box) {
  const [size, setSize] = useState(null);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([{ contentRect }]) =>
      setSize({ width: contentRect.width, height: contentRect.height }),
    );
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return size;
}

// `turn(event, x, y)` at each turn of the wheel; x and y are those of the pointer in the element.
export function useWheel(box, turn) {
  const latest = useRef(null);
  latest.current = turn;
  useEffect(() => {
    const listen = (event) => {
      event.preventDefault();
      const { left, top } = box.current.getBoundingClientRect();
      latest.current(event, event.clientX - left, event.clientY - top);
    };
    box.current.addEventListener("wheel", listen, { passive: false });
    return () => box.current?.removeEventListener("wheel", listen);
  }, []);
}

// `move(dx, dy)` while the drawing is dragged, by anything but what is `pressable`.
export function useDrag(pressable, move) {
  const from = useRef(null);
  return {
    onPointerDown: (event) => {
      if (event.target.closest(pressable)) return;
      from.current = { x: event.clientX, y: event.clientY };
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event) => {
      if (!from.current || !event.buttons) return;
      move(event.clientX - from.current.x, event.clientY - from.current.y);
      from.current = { x: event.clientX, y: event.clientY };
    },
    onPointerUp: () => {
      from.current = null;
    },
  };
}

// The attributes of a part of a drawing that is opened like a button.
export const pressable = (open) => ({
  role: "button",
  onClick: open,
  onKeyDown: (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open();
  },
});

export const Arrowhead = ({ id }) =>
  html`<defs>
    <marker
      id=${id}
      viewBox="0 0 8 8"
      refX="7"
      refY="4"
      markerWidth="7"
      markerHeight="7"
      orient="auto"
    >
      <path d="M0 0.5L8 4L0 7.5z" />
    </marker>
  </defs>`;
