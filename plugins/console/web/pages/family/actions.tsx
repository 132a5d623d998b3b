// What can be done with a member of the family.
import { path } from '../../api/call.ts'
import type { Instance, Snapshot } from '../../api/types.ts'
import { Button } from '../../parts/button.tsx'
import { bytes } from '../../parts/format.ts'
import { unforkable } from '../fork-instance.tsx'
import { askToDelete } from '../instance-actions.ts'
import { askToRemove } from '../remove.ts'
import type { Node } from './nodes.ts'
import { titleOf } from './text.ts'

/** What a dialog is open about. */
export type Opened = { readonly what: 'fork' | 'cost', readonly instance: Instance } | { readonly what: 'fork-snapshot', readonly snapshot: Snapshot } | { readonly what: 'image', readonly name: string }

interface ActionsProps {
  readonly node: Node
  readonly open: (opened: Opened) => void
  readonly reload: () => void
}

export function Actions ({ node, open, reload }: ActionsProps) {
  const title = titleOf(node)
  switch (node.kind) {
    case 'instance': {
      const { instance } = node
      return (
        <>
        <Button label={`Cost of ${title}`} onPress={() => { open({ what: 'cost', instance }) }}>Cost</Button>
        <Button label={`Fork ${title}`} scope='instance:write' unless={unforkable(instance)} onPress={() => { open({ what: 'fork', instance }) }}>Fork</Button>
        <Button label={`Delete ${title}`} scope='instance:delete' onPress={async () => { await askToDelete([instance], reload) }}>Delete</Button>
        </>
      )
    }
    case 'snapshot': {
      const { snapshot } = node
      return (
        <>
        <Button label={`Fork ${title}`} scope='instance:write' onPress={() => { open({ what: 'fork-snapshot', snapshot }) }}>Fork</Button>
        <Button label={`Delete ${title}`} scope='snapshot:delete' onPress={() => { askToRemove({ url: path`/snapshots/${snapshot.id}`, name: `snapshot ${title}`, goes: [`${bytes(snapshot.size_bytes)} on the disk; instances that were made from it stay`], done: reload }) }}>Delete</Button>
        </>
      )
    }
    case 'template': {
      const { template } = node
      return template === undefined ? null
        : <Button label={`Delete ${title}`} scope='instance:delete' onPress={() => { askToRemove({ url: path`/templates/${template.id}`, name: title, goes: [`${bytes(template.disk_bytes)} on the disk`, ...template.spares > 0 ? [`${template.spares} spare VM${template.spares === 1 ? '' : 's'} of it`] : [], 'Instances that were made of it stay; the next one of its shape boots'], done: reload }) }}>Delete</Button>
    }
    case 'image': return (
      <>
      <Button label={`Details of ${title}`} unless={node.image === undefined && 'The image has no name any more.'} onPress={() => { open({ what: 'image', name: node.name }) }}>Details</Button>
      {node.image !== undefined && <Button label={`Delete ${title}`} scope='image:delete' unless={node.users > 0 && `${node.users} instance${node.users === 1 ? ' uses' : 's use'} it.`} onPress={() => { askToRemove({ url: path`/images/${node.name}`, name: title, goes: [`The name ${title}, and its disk unless another name has it`], done: reload }) }}>Delete</Button>}
      </>
    )
    default: return null
  }
}
