// How much of something is taken.
export interface Room { readonly capacity: number, readonly effective_limit: number, readonly allocated: number, readonly available: number, readonly oversub_ratio: number }

export function Meter ({ title, room, format }: { readonly title: string, readonly room: Room, readonly format: (value: number) => string }) {
  if (room.effective_limit === 0) return <div class='meter'><h2>{title}</h2><p><strong>{format(room.allocated)}</strong> taken</p><p class='quiet'>How much there is, is not known here.</p></div>
  const share = Math.min(1, room.allocated / room.effective_limit)
  return <div class='meter'><h2>{title}</h2><p><strong>{format(room.allocated)}</strong> of {format(room.effective_limit)}</p><progress max={1} value={share} aria-label={`${title} taken`} /><p class='quiet'>{format(room.available)} left{room.oversub_ratio !== 1 && `, ${format(room.capacity)} × ${room.oversub_ratio}`}</p></div>
}
