// Files of the guest: list, download, upload. The guest's own `ls`, which an image may lack, lists folders; downloads and uploads work without it.
import { useState } from 'preact/hooks'
import type { Instance } from '../../api/types.ts'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Table } from '../../parts/table.tsx'
import { complain, say } from '../../state/notices.ts'
import { fetchFile, listFolder, putFile } from './file-transfer.ts'

interface Entry { readonly name: string, readonly isFolder: boolean }

export function Files ({ instance: { id, state } }: { readonly instance: Instance }) {
  const [folder, setFolder] = useState('/')
  const [entries, setEntries] = useState<readonly Entry[] | undefined>(undefined)
  const unless = state !== 'Running' && `Files need a running instance; it is ${state}.`
  const look = async (wanted: string): Promise<void> => {
    setFolder(wanted)
    setEntries(await listFolder(id, wanted))
  }
  const inFolder = (name: string): string => `${folder.replace(/\/$/, '')}/${name}`
  const up = folder.replace(/\/[^/]+\/?$/, '') === '' ? '/' : folder.replace(/\/[^/]+\/?$/, '')
  return (
    <section aria-label='Files'>
      <div class='bar'>
        <label>Folder <input class='command' value={folder} spellcheck={false} onInput={(event) => { setFolder(event.currentTarget.value) }} /></label>
        <Button kind='primary' scope='instance:write' unless={unless} onPress={async () => { await look(folder) }}>Look</Button>
        <Button scope='instance:write' unless={unless} onPress={async () => { await look(up) }}>Up</Button>
        <label class='upload'>Upload into it <input
          type='file' disabled={unless !== false} onChange={(event) => {
            const file = event.currentTarget.files?.[0]
            if (file !== undefined) void putFile(id, inFolder(file.name), file).then(async () => { say(`${file.name}: uploaded`); await look(folder) }, complain)
          }}
                                             />
        </label>
      </div>
      {entries === undefined ? <Empty title='Nothing was looked at yet.'>Name a folder and look.</Empty> : entries.length === 0 ? <Empty title='The folder is empty.' />
        : <Table
            label={`Files in ${folder}`} rows={entries} keyOf={({ name }) => name} columns={[
              { title: 'Name', kind: 'wide', sort: ({ name }) => name, cell: ({ name, isFolder }) => <>{isFolder ? '📁 ' : ''}{name}</> },
              { title: 'Actions', kind: 'actions', cell: ({ name, isFolder }) => isFolder ? <Button label={`Look into ${name}`} onPress={async () => { await look(inFolder(name)) }}>Open</Button> : <Button label={`Download ${name}`} onPress={async () => { await fetchFile(id, inFolder(name)) }}>Download</Button> }
            ]}
          />}
    </section>
  )
}
