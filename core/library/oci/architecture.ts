// The architecture of this host in OCI's terms.
const NAMES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

export function ociArchitecture (nodeArch: string = process.arch): string {
  return NAMES[nodeArch] ?? nodeArch
}
