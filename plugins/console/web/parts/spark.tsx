// A small graph without axes; its last value is beside it as text.
export function Spark ({ values, label, text }: { readonly values: readonly number[], readonly label: string, readonly text: string }) {
  if (values.length < 2) return <span class='spark quiet'>{text}</span>
  const top = Math.max(...values, 1e-9)
  const shown = values.slice(-40)
  const points = shown.map((value, index) => `${(index / (shown.length - 1) * 64).toFixed(1)},${(17 - value / top * 15).toFixed(1)}`).join(' ')
  return <span class='spark'><svg viewBox='0 0 64 18' role='img' aria-label={`${label}: ${text}`}><polyline points={points} /></svg><span>{text}</span></span>
}
