// Tells a JSON object from other parsed JSON values.

/** Whether a value that came over the wire is a JSON object. */
export function isRecord (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
