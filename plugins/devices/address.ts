// PCI addresses and the names that are made of them. Pure.
const ADDRESS = /^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([01][0-9a-f])\.([0-7])$/

/** The form `0000:a2:00.0` of an address that people may have written in another form; undefined for what is not an address. */
export function normaliseAddress (text: string): string | undefined {
  const [, domain = '0000', bus, device, fn] = ADDRESS.exec(text.trim().toLowerCase()) ?? []
  return bus === undefined || device === undefined || fn === undefined ? undefined : `${domain}:${bus}:${device}.${fn}`
}

/** `pci-0000-a2-00-0` */
export function nameOf (address: string): string {
  return `pci-${address.replace(/[:.]/g, '-')}`
}

/** The part of an address that all functions of one device share. */
export function slotOf (address: string): string {
  return address.slice(0, address.lastIndexOf('.'))
}
