// Icons, drawn on a grid of 16.

const PATHS = {
  check: "M3 8.5l3.2 3.2L13 4.8",
  cross: "M4 4l8 8M12 4l-8 8",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7L14 14",
  copy: "M5.5 5.5V3a1 1 0 0 1 1-1H13a1 1 0 0 1 1 1v6.500a1 1 0 0 1-1 1h-2.500M3 5.500h6.500a1 1 0 0 1 1 1V13a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1V6.500a1 1 0 0 1 1-1z",
  running: "M8 2a6 6 0 1 0 6 6",
  lock: "M4 7.500h8a1 1 0 0 1 1 1V13a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V8.500a1 1 0 0 1 1-1zM5.200 7.500V5a2.800 2.800 0 0 1 5.600 0v2.500",
  open: "M4 7.500h8a1 1 0 0 1 1 1V13a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V8.500a1 1 0 0 1 1-1zM5.200 7.500V5a2.800 2.800 0 0 1 5.400-1",
  eye: "M1.500 8S4 3.500 8 3.500 14.500 8 14.500 8 12 12.500 8 12.500 1.500 8 1.500 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4L6 8l4 4",
  download: "M8 2v8M4.500 7L8 10.500 11.500 7M2.500 13.500h11",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.500 9.500A6 6 0 0 1 6.500 2.500a6 6 0 1 0 7 7z",
  screen: "M2 3h12v8H2zM5.500 14h5M8 11v3",
  stack: "M8 1.500l6 3-6 3-6-3zM2 8l6 3 6-3M2 11.500l6 3 6-3",
  state: "M3 4c0-1.100 2.200-2 5-2s5 .9 5 2-2.200 2-5 2-5-.9-5-2zM3 4v8c0 1.100 2.200 2 5 2s5-.9 5-2V4M3 8c0 1.100 2.200 2 5 2s5-.9 5-2",
  person: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.500 14a5.500 5.500 0 0 1 11 0",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.500V8l2.500 1.500",
  warning: "M8 2l6.500 12h-13zM8 6.500v3.500M8 12v.1",
  environment: "M2 4.500h6M12 4.500h2M10 2.500v4M2 11.500h2M8 11.500h6M6 9.500v4",
  key: "M6 10.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM9 8.500l5 0M12 8.500v2.500",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className={`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
