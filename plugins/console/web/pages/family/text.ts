// How a member of the family is called, and what it costs or shares.
import { bytes } from '../../parts/format.ts'
import { href } from '../../state/route.ts'
import type { Node } from './nodes.ts'

/** What an instance may take, by its id. */
export type Promised = ReadonlyMap<string, { readonly memory_bytes: number, readonly disk_bytes: number }>

export function titleOf (node: Node): string {
  switch (node.kind) {
    case 'image': return node.name
    case 'template': return node.template === undefined ? `Template ${node.id.slice(0, 8)}` : `Template ${node.template.vcpus} vCPU${node.template.vcpus === 1 ? '' : 's'}, ${node.template.size}, ${node.template.network ? 'network' : 'no network'} (${node.id.slice(0, 8)})`
    case 'instance': return node.instance.name
    case 'snapshot': return node.snapshot.name ?? node.snapshot.id.slice(0, 12)
    default: return node.title
  }
}

export function noteOf (node: Node, promised: Promised): string {
  switch (node.kind) {
    case 'image': return node.image === undefined ? 'known under this name no more' : `${bytes(node.image.size_bytes)} on the disk, ${node.users === 0 ? 'and no instance of it' : `one for ${node.users === 1 ? 'its instance' : `all ${node.users}`}`}`
    case 'template': return node.template === undefined ? 'gone; what was made of it stays' : `${bytes(node.template.disk_bytes)} on the disk, ${node.images > 1 ? `for ${node.images} images, ` : ''}${node.template.spares === 0 ? 'no memory' : `${node.template.spares} spare VM${node.template.spares === 1 ? '' : 's'}`}`
    case 'instance': {
      const most = promised.get(node.instance.id)
      const room = most === undefined ? '' : most.memory_bytes === 0 ? `no memory, up to ${bytes(most.disk_bytes)} disk` : `up to ${bytes(most.memory_bytes)} memory, ${bytes(most.disk_bytes)} disk`
      return node.lost === undefined ? room : `of ${node.lost}, which is gone${room === '' ? '' : `; ${room}`}`
    }
    case 'snapshot': return `snapshot${node.snapshot.kind === 'Standby' ? ' with memory' : ''}, ${bytes(node.snapshot.size_bytes)} on the disk`
    default: return node.note
  }
}

export function linkOf (node: Node): string | undefined {
  switch (node.kind) {
    case 'image': return href(['images'], { q: node.name })
    case 'instance': return href(['instances', node.instance.id])
    case 'snapshot': return href(['snapshots'], { q: node.snapshot.id })
    default: return undefined
  }
}
