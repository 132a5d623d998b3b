// Short messages about what was done or failed.
import { dismiss, notices } from '../state/notices.ts'

export function Notices () {
  return (
    <div class='notices' role='status' aria-live='polite'>{notices.value.map(({ id, text, isError }) => <div key={id} class={isError ? 'notice bad' : 'notice'}>
      <p>{text}</p><button type='button' class='icon' aria-label='Dismiss' onClick={() => { dismiss(id) }}>×</button>
                                                                                                        </div>)}
    </div>
  )
}
