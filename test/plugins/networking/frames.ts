// Ethernet frames, byte by byte, as only a hostile guest sends some of them.

export const BROADCAST = 'ff:ff:ff:ff:ff:ff'

export interface EthernetFields { readonly to: string, readonly from: string, readonly type?: number, readonly payload: Buffer }
export interface UdpFields { readonly source: string, readonly destination: string, readonly port: number, readonly text: string | Buffer, readonly sourcePort?: number }
export interface TcpFields { readonly source: string, readonly destination: string, readonly port: number, readonly sourcePort?: number }
export interface ArpFields { readonly operation: 1 | 2, readonly mac: string, readonly ip: string, readonly targetIp: string }

export function ethernet ({ to, from, type = 0x0800, payload }: EthernetFields): Buffer {
  return Buffer.concat([mac(to), mac(from), word(type), payload])
}

/** The same frame with VLAN tags in front of its type. */
export function tagged (frame: Buffer, ...tags: readonly number[]): Buffer {
  return Buffer.concat([frame.subarray(0, 12), ...tags.map((tag) => Buffer.concat([word(tag), word(5)])), frame.subarray(12)])
}

/** An IPv4 packet with a UDP datagram. */
export function udp ({ source, destination, port, text, sourcePort = 5555 }: UdpFields): Buffer {
  const data = Buffer.from(text)
  return ipv4(17, source, destination, Buffer.concat([word(sourcePort), word(port), word(8 + data.length), word(0), data]))
}

/** An IPv4 packet that opens a TCP connection. */
export function tcpSyn ({ source, destination, port, sourcePort = 5555 }: TcpFields): Buffer {
  const segment = Buffer.concat([word(sourcePort), word(port), Buffer.alloc(8), Buffer.from([0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0])])
  segment.writeUInt16BE(checksum(Buffer.concat([ip(source), ip(destination), Buffer.from([0, 6]), word(segment.length), segment])), 16)
  return ipv4(6, source, destination, segment)
}

function ipv4 (protocol: number, source: string, destination: string, payload: Buffer): Buffer {
  const header = Buffer.concat([Buffer.from([0x45, 0]), word(20 + payload.length), word(1), word(0), Buffer.from([64, protocol]), word(0), ip(source), ip(destination)])
  header.writeUInt16BE(checksum(header), 10)
  return Buffer.concat([header, payload])
}

export function arp ({ operation, mac: sender, ip: senderIp, targetIp }: ArpFields): Buffer {
  return Buffer.concat([word(1), word(0x0800), Buffer.from([6, 4]), word(operation), mac(sender), ip(senderIp), Buffer.alloc(6), ip(targetIp)])
}

/** An IPv6 packet with a UDP datagram, from and to link-local addresses. */
export function udp6 (text: string): Buffer {
  const data = Buffer.from(text)
  const datagram = Buffer.concat([word(5555), word(53), word(8 + data.length), word(1), data])
  const address = (last: number): Buffer => Buffer.from([0xfe, 0x80, ...Array<number>(13).fill(0), last])
  return Buffer.concat([Buffer.from([0x60, 0, 0, 0]), word(datagram.length), Buffer.from([17, 64]), address(2), address(1), datagram])
}

/** A question for the address of a name. */
export function question (name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]))
  return Buffer.concat([Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), ...labels, Buffer.from([0, 0, 1, 0, 1])])
}

/** The hex of an address, to look for in frames. */
export function ipHex (address: string): string {
  return ip(address).toString('hex')
}

export function macHex (address: string): string {
  return mac(address).toString('hex')
}

function mac (text: string): Buffer {
  return Buffer.from(text.split(':').map((byte) => Number.parseInt(byte, 16)))
}

function ip (text: string): Buffer {
  return Buffer.from(text.split('.').map(Number))
}

function word (value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff])
}

/** Of an even number of bytes. */
function checksum (header: Buffer): number {
  let sum = 0
  for (let at = 0; at < header.length; at += 2) sum += header.readUInt16BE(at)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16)
  return ~sum & 0xffff
}
