-- Which packet an answer means: SACK and NACK a data packet, an answered probe or endpoint request that request.
--
-- Owns what is remembered of packets for that, with a bound, and the two fields that hold frame numbers; registers nothing.
-- mrc.lua asks for it by `require`, has the fields registered, and tells of every packet whose headers are there. A frame
-- knows its answer only when it is looked at again: in Wireshark always, in tshark with -2. When it is looked at first there
-- may be no fields of the headers in front, so of an EV only the half in the UDP source port is compared.
--
-- MRC 1.0 7.5 (what SETH, NETH and PETH say of the packet that caused them).

local DATA_FIRST, DATA_LAST = 0xC6, 0xCB
local ENDPOINT_REQUEST, ENDPOINT_RESPONSE, SACK, NACK, PROBE = 0xD8, 0xD9, 0xDC, 0xDD, 0xDE
-- Of one packet: each link on which it was captured, and each time it was sent.
local COPIES_MAX = 16

local fields = {
  to = ProtoField.framenum("mrc.response_to", "Answer to", base.NONE, frametype.REQUEST),
  by = ProtoField.framenum("mrc.response_in", "Answered in", base.NONE, frametype.RESPONSE),
}

-- A table of so many keys at most: the oldest makes room.
local function bounded()
  return { values = {}, ring = {}, place = 0 }
end

local function put(map, key, value, limit)
  if map.values[key] == nil then
    map.place = map.place % limit + 1
    local oldest = map.ring[map.place]
    if oldest ~= nil then
      map.values[oldest] = nil
    end
    map.ring[map.place] = key
  end
  map.values[key] = value
end

local asked, answer_to, answered_in = bounded(), bounded(), bounded()

local function reset()
  asked, answer_to, answered_in = bounded(), bounded(), bounded()
end

-- What kind of question a packet is, and its number; nil for all others.
local function question(bth, values)
  if bth.opcode >= DATA_FIRST and bth.opcode <= DATA_LAST then
    return "data", bth.psn
  elseif bth.opcode == PROBE then
    return "probe", values.probe_id
  elseif bth.opcode == ENDPOINT_REQUEST then
    return "endpoint", bth.psn % 2 ^ 16
  end
  return nil
end

-- The question that an answer belongs to, and the QP and EV it names: nil where it names none.
local function answer(bth, values)
  if bth.opcode == SACK and values.pr == 1 then
    return "probe", values.ack_psn_offset % 2 ^ 16, values.spdcid, values.entropy
  elseif bth.opcode == SACK then
    local offset = values.ack_psn_offset >= 2 ^ 15 and values.ack_psn_offset - 2 ^ 16 or values.ack_psn_offset
    return "data", (values.cack_psn + offset) % 2 ^ 24, values.spdcid, values.entropy
  elseif bth.opcode == NACK then
    return "data", values.nack_psn, values.spdcid, values.entropy
  elseif bth.opcode == ENDPOINT_RESPONSE then
    return "endpoint", bth.psn % 2 ^ 16
  end
  return nil
end

local function remember(key, frame, bth, half, limit)
  local copies = asked.values[key] or {}
  if #copies == COPIES_MAX then
    table.remove(copies, 1)
  end
  copies[#copies + 1] = { frame = frame, qp = bth.qp % 2 ^ 16, half = half }
  put(asked, key, copies, limit)
end

-- The last copy with this half of an EV, or else of this QP: a packet that was sent again has another EV. An answer that
-- names neither has the last one.
local function meant(copies, qp, half)
  local found
  for index = #copies, 1, -1 do
    local one = copies[index]
    if not qp or one.half == half then
      return one
    end
    found = found or (one.qp == qp and one or nil)
  end
  return found
end

local function link(frame, kind, number, qp, half, pinfo, limit)
  local copies = asked.values[("%s %s %s %d"):format(kind, tostring(pinfo.dst), tostring(pinfo.src), number)]
  local one = copies and meant(copies, qp, half)
  if not one then
    return
  end
  put(answer_to, frame, one.frame, limit)
  for _, copy in ipairs(copies) do
    if copy.half == one.half and copy.qp == one.qp and not answered_in.values[copy.frame] then
      put(answered_in, copy.frame, frame, limit)
    end
  end
end

-- Notes a packet when it is seen first, and shows its links; `values` are those of its last header. Of the preferences
-- `links` says how many packets are remembered, and `port_high` which half of an EV is in the source port.
local function show(root, pinfo, bth, values, prefs)
  local frame, limit = pinfo.number, prefs.links
  if not pinfo.visited and limit > 0 then
    local kind, number = question(bth, values)
    if kind then
      remember(("%s %s %s %d"):format(kind, tostring(pinfo.src), tostring(pinfo.dst), number), frame, bth, pinfo.src_port, limit)
    end
    local of, which, qp, entropy = answer(bth, values)
    if of then
      local half = entropy and (prefs.port_high and math.floor(entropy / 2 ^ 16) or entropy % 2 ^ 16)
      link(frame, of, which, qp, half, pinfo, limit)
    end
  end
  if answer_to.values[frame] then
    root:add(fields.to, answer_to.values[frame]):set_generated()
  end
  if answered_in.values[frame] then
    root:add(fields.by, answered_in.values[frame]):set_generated()
  end
end

return { fields = fields, reset = reset, show = show }
