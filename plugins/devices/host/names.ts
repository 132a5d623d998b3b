// Names of vendors and devices, from the system's pci.ids.
import { readFile } from 'node:fs/promises'
import { hasCode } from '../../../core/errors/system-code.ts'

/** the paths of Debian's package pci.ids, and of other systems */
export const PCI_IDS_FILES = ['/usr/share/misc/pci.ids', '/usr/share/hwdata/pci.ids'] as const

export interface PciNames {
  vendor (vendorId: string): string | undefined
  device (vendorId: string, deviceId: string): string | undefined
}

/** Reads the first of the files that exists, at the first call. Without any file, nothing has a name. */
export function createPciNames (files: readonly string[]): () => Promise<PciNames> {
  let reading: Promise<PciNames> | undefined
  return async () => {
    reading ??= readFirst(files).then(parsePciIds)
    return await reading
  }
}

/**
 * Lines such as `10de  NVIDIA Corporation` are vendors. Their devices follow, after one tab; subsystems, after two tabs, are skipped. A line `C 03  Display controller` ends the vendors.
 */
function parsePciIds (text: string): PciNames {
  const names = new Map<string, string>()
  let vendorId = ''
  for (const line of text.split('\n')) {
    if (/^[A-Z] /.test(line)) break
    const [, tab, id, name] = /^(\t?)([0-9a-f]{4}) {2}(.+)$/.exec(line) ?? []
    if (id === undefined || name === undefined) continue
    if (tab === '') vendorId = id
    names.set(tab === '' ? id : `${vendorId}:${id}`, name.trim())
  }
  return {
    vendor: (vendor) => names.get(vendor),
    device: (vendor, device) => names.get(`${vendor}:${device}`)
  }
}

async function readFirst (files: readonly string[]): Promise<string> {
  for (const file of files) {
    try {
      return await readFile(file, 'utf8')
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
    }
  }
  return ''
}
