// What changes on this server, since the page was opened.
import { EventList } from '../parts/event-list.tsx'
import { Empty } from '../parts/empty.tsx'
import { recentEvents } from '../state/live.ts'
import { Head } from './head.tsx'
import { Search, searchText } from './search.tsx'

export function Events () {
  const wanted = searchText().toLowerCase()
  const found = recentEvents.value.filter(({ type, data }) => `${type} ${data?.name ?? ''} ${data?.id ?? ''} ${data?.status ?? ''}`.toLowerCase().includes(wanted))
  return (
    <>
      <Head title='Events' count={recentEvents.value.length}><Search label='Search events' /></Head>
      {found.length === 0 ? <Empty title={recentEvents.value.length === 0 ? 'Nothing has changed since this page was opened.' : 'No event matches.'}>The last 500 changes stand here as they happen.</Empty> : <EventList label='Events' events={found} />}
    </>
  )
}
