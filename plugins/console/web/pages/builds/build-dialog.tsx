// Begins a build from a folder of the reader's.
import { useState } from 'preact/hooks'
import { call, messageOf } from '../../api/call.ts'
import type { Build } from '../../api/types.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { bytes } from '../../parts/format.ts'
import { Problem } from '../../parts/problem.tsx'
import { filesOf, pack, type FolderFile } from './folder.ts'

const NETWORKS = { '': 'as the server decides', isolated: "only this server's registry", egress: 'as an instance reaches it' } as const

export function BuildDialog ({ onClose, onBegun }: { readonly onClose: () => void, readonly onBegun: (build: Build) => void }) {
  const [files, setFiles] = useState<readonly FolderFile[]>([])
  const [problem, setProblem] = useState('')
  const [step, setStep] = useState('')
  const size = files.reduce((sum, { file }) => sum + file.size, 0)
  const begin = async (form: HTMLFormElement): Promise<void> => {
    setProblem('')
    try {
      setStep('Packing the folder …')
      const body = new FormData()
      for (const [name, value] of new FormData(form)) if (typeof value === 'string' && value.trim() !== '') body.append(name, value.trim())
      body.append('source', await pack(files), 'source.tar.gz')
      setStep('Sending it …')
      onBegun(await call<Build>('POST', '/builds', body))
    } catch (error) {
      setProblem(messageOf(error))
    }
    setStep('')
  }
  return (
    <Dialog title='Build an image' onClose={onClose} wide>
      <form id='build' noValidate onSubmit={(event) => { event.preventDefault() }}>
        {problem !== '' && <Problem text={problem} />}
        <div class='field'><label for='build-folder'>Folder<span class='required'> required</span></label><input id='build-folder' type='file' aria-describedby='build-folder-hint' {...{ webkitdirectory: true }} onChange={(event) => { setFiles(filesOf(event.currentTarget.files ?? [])) }} />
          <p id='build-folder-hint' class='hint'>{files.length === 0 ? 'With a Dockerfile. It is packed here and sent.' : `${files.length} file${files.length === 1 ? '' : 's'}, ${bytes(size)}`}</p></div>
        <div class='field'><label for='build-name'>Image name</label><input id='build-name' name='image_name' autocomplete='off' spellcheck={false} aria-describedby='build-name-hint' /><p id='build-name-hint' class='hint'>Such as shop/web:v2. Without one it is builds/ and the id of the build.</p></div>
        <div class='field'><label for='build-file'>Dockerfile</label><input id='build-file' name='dockerfile_path' autocomplete='off' spellcheck={false} placeholder='Dockerfile' aria-describedby='build-file-hint' /><p id='build-file-hint' class='hint'>Its path in the folder.</p></div>
        <div class='field'><label for='build-network'>What its steps reach</label><select id='build-network' name='network_mode'>{Object.entries(NETWORKS).map(([value, title]) => <option key={value} value={value}>{title}</option>)}</select></div>
        <footer><span class='quiet' role='status'>{step}</span><Button onPress={onClose}>Cancel</Button><Button kind='primary' unless={files.length === 0 && 'Choose a folder first.'} onPress={async () => { const form = document.getElementById('build'); if (form instanceof HTMLFormElement) await begin(form) }}>Build</Button></footer>
      </form>
    </Dialog>
  )
}
