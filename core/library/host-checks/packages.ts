// The packages that a host is checked for. `node dist/setup/host-packages.js` writes the list, from core/process/packages.ts and the manifests of the plugins: change those.
import type { CheckedPackage } from './installed.ts'

export const PACKAGES: readonly CheckedPackage[] = [
  { name: 'ca-certificates', proof: '/etc/ssl/certs/ca-certificates.crt', use: 'authorities to trust in' },
  { name: 'docker-registry', proof: 'docker-registry', use: 'the built-in registry', oldest: '2.8.2' },
  { name: 'e2fsprogs', proof: 'mkfs.ext4', use: 'disks', versionOption: '-V' },
  { name: 'erofs-utils', proof: 'mkfs.erofs', use: 'images', versionOption: '-V' },
  { name: 'kmod', proof: 'depmod', use: 'kernel headers in machines' },
  { name: 'lz4', proof: 'lz4', use: 'memory that lz4 compresses' },
  { name: 'openssl', proof: 'openssl', use: 'certificates', versionOption: 'version' },
  { name: 'qemu-system-x86', proof: 'qemu-system-x86_64', use: 'VMs', oldest: '7.2.0' },
  { name: 'skopeo', proof: 'skopeo', use: 'images', oldest: '1.9.3' },
  { name: 'umoci', proof: 'umoci', use: 'images', oldest: '0.4.7' },
  { name: 'xz-utils', proof: 'xz', use: 'kernels that xz compresses' },
  { name: 'zstd', proof: 'zstd', use: 'compressed memory' },
  { name: 'conntrack', proof: 'conntrack', use: 'networks', oldest: '1.4.7' },
  { name: 'dnsmasq-base', proof: 'dnsmasq', use: 'names in networks', oldest: '2.90' },
  { name: 'iproute2', proof: 'ip', use: 'networks', versionOption: '-V', oldest: '6.1.0' },
  { name: 'nftables', proof: 'nft', use: 'networks', oldest: '1.0.6' },
  { name: 'procps', proof: 'sysctl', use: 'networks' },
  { name: 'lego', proof: 'lego', use: 'certificates by ACME', isOptional: true },
  { name: 'nginx', proof: 'nginx', use: 'ingresses', versionOption: '-v', oldest: '1.22.1', isOptional: true }
]
