// IPv4 addresses as numbers.

/** `undefined` for anything but an IPv4 address in its usual form. */
export function parseIPv4 (text: string): number | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return undefined
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0)
}

export function formatIPv4 (address: number): string {
  return `${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`
}
