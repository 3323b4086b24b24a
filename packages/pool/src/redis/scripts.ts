/**
 * The steps of the directory as scripts, each of which Redis carries out as a whole, by its own clock.
 *
 * A record is a hash: `owner`, `token`, `until` (milliseconds), `request` and `waiting` while it is held, and `note`.
 */

/** KEYS: record. ARGV: owner, lease, request, prefix of channels, key, time to keep. */
export const acquireScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local owner, token, ends, note, request, waiting, kept =
  unpack(redis.call('HMGET', KEYS[1], 'owner', 'token', 'until', 'note', 'request', 'waiting', 'kept'))
if owner and tonumber(ends) > now then
  if request ~= 'end' then request = ARGV[3] end
  waiting = waiting or ''
  if not string.find(waiting, ARGV[1] .. ' ', 1, true) and #waiting < 65536 then waiting = waiting .. ARGV[1] .. ' ' end
  redis.call('HSET', KEYS[1], 'request', request, 'waiting', waiting)
  redis.call('PUBLISH', ARGV[4] .. owner, cjson.encode({ key = ARGV[5], event = request }))
  return { 'occupied', owner, tostring(tonumber(ends) - now) }
end
token = string.format('%.0f', math.max((tonumber(token) or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('HDEL', KEYS[1], 'request', 'waiting')
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'token', token, 'until', string.format('%.0f', now + ARGV[2]))
if kept ~= '1' then redis.call('PEXPIRE', KEYS[1], ARGV[2] + ARGV[6]) end
return { 'held', token, note or '', owner and 'abandoned' or 'free' }
`;

/** KEYS: records. ARGV: owner, lease, time to keep, a token for each record. Returns an item for each: `held`, `end`, … */
export const renewScript = `
local time = redis.call('TIME')
local ends = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
local renewed = {}
for index, record in ipairs(KEYS) do
  local owner, token, request, kept = unpack(redis.call('HMGET', record, 'owner', 'token', 'request', 'kept'))
  if owner == ARGV[1] and token == ARGV[index + 3] then
    redis.call('HSET', record, 'until', ends)
    if kept ~= '1' then redis.call('PEXPIRE', record, ARGV[2] + ARGV[3]) end
    renewed[index] = request or 'held'
  else
    renewed[index] = 'over'
  end
end
return renewed
`;

/** KEYS: record. ARGV: owner, token, note, kept, time to keep. */
export const updateScript = `
local owner, token = unpack(redis.call('HMGET', KEYS[1], 'owner', 'token'))
if owner ~= ARGV[1] or token ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'note', ARGV[3], 'kept', ARGV[4])
if ARGV[4] == '1' then redis.call('PERSIST', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
return 1
`;

/** KEYS: record. ARGV: owner, token, note or nothing, kept, time to keep, prefix of channels, key. */
export const releaseScript = `
local owner, token, waiting = unpack(redis.call('HMGET', KEYS[1], 'owner', 'token', 'waiting'))
if owner ~= ARGV[1] or token ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], 'owner', 'until', 'request', 'waiting')
redis.call('HSET', KEYS[1], 'note', ARGV[3], 'kept', ARGV[4])
if ARGV[4] == '1' then redis.call('PERSIST', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
for other in string.gmatch(waiting or '', '%S+') do
  redis.call('PUBLISH', ARGV[6] .. other, cjson.encode({ key = ARGV[7], event = 'released' }))
end
return 1
`;
