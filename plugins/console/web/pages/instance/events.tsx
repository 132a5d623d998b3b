// What happened to an instance since the page was opened.
import type { Instance } from '../../api/types.ts'
import { Empty } from '../../parts/empty.tsx'
import { EventList } from '../../parts/event-list.tsx'
import { recentEvents } from '../../state/live.ts'

export function InstanceEvents ({ instance: { id, name } }: { readonly instance: Instance }) {
  const events = recentEvents.value.filter(({ data }) => data?.id === id)
  return events.length === 0 ? <Empty title='No event yet.'>What happens to {name} from now on stands here.</Empty> : <EventList label={`Events of ${name}`} events={events} />
}
