-- Wireshark and tshark read the frames of emulated links with this, in a capture of the network that carries a fabric: one UDP
-- datagram holds one frame, or several in a row where the kernel has not cut a train.
--
-- Owns the display of link headers alone: layout and version are those of mrcfabric.wire.link, and a test compares. What a
-- link carries is better read in a capture of `mrcfabric capture`, which has no such headers. Install: see docs/PACKETS.md.

local frames = Proto("mrclink", "mrcfabric link")

local HEADER_SIZE, VERSION, CONTROL = 24, 3, 1
local MAC_CONTROL, IPV6 = 0x8808, 6

local field = {
  arrival = ProtoField.uint64("mrclink.arrival_ns", "Arrival, fabric time in ns"),
  sequence = ProtoField.uint64("mrclink.sequence", "Sequence number"),
  size = ProtoField.uint16("mrclink.size", "Bytes with this header"),
  incarnation = ProtoField.uint16("mrclink.incarnation", "Incarnation of the sender"),
  version = ProtoField.uint8("mrclink.version", "Version"),
  flags = ProtoField.uint8("mrclink.flags", "Flags", base.HEX),
  control = ProtoField.bool("mrclink.control", "Link control frame", 8, nil, CONTROL),
  tag = ProtoField.uint32("mrclink.tag", "Tag", base.HEX),
  bytes = ProtoField.uint32("mrclink.bytes", "Bytes of the frame"),
  body = ProtoField.bytes("mrclink.body", "Frame"),
}
frames.fields = {
  field.arrival, field.sequence, field.size, field.incarnation, field.version, field.flags, field.control, field.tag,
  field.bytes, field.body,
}

-- Whether a link header and the first bytes of what it announces stand at `start`.
local function begins(tvb, start)
  if tvb:captured_len() < start + HEADER_SIZE + 14 or tvb(start + 18, 1):uint() ~= VERSION then
    return false
  end
  -- No fabric runs for two years, so the first byte is 0; no BTH of MRC or RoCE begins so.
  if tvb(start, 1):uint() ~= 0 then
    return false
  end
  local flags = tvb(start + 19, 1):uint()
  if flags == CONTROL then
    return tvb(start + HEADER_SIZE + 12, 2):uint() == MAC_CONTROL
  end
  return flags == 0 and math.floor(tvb(start + HEADER_SIZE, 1):uint() / 16) == IPV6
end

-- Where the frame at `start` ends, by its own word; a capture may have less of it.
local function end_of(tvb, start)
  return math.min(start + math.max(tvb(start + 14, 2):uint(), HEADER_SIZE), tvb:captured_len())
end

function frames.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "mrclink"
  local start, count, controls = 0, 0, 0
  while start < tvb:captured_len() and begins(tvb, start) do
    local stop = end_of(tvb, start)
    local root = tree:add(frames, tvb(start, stop - start))
    root:add(field.arrival, tvb(start, 8))
    root:add(field.sequence, tvb(start + 8, 6))
    root:add(field.size, tvb(start + 14, 2))
    root:add(field.incarnation, tvb(start + 16, 2))
    root:add(field.version, tvb(start + 18, 1))
    root:add(field.flags, tvb(start + 19, 1))
    root:add(field.control, tvb(start + 19, 1))
    root:add(field.tag, tvb(start + 20, 4))
    root:add(field.bytes, tvb(start, 0), stop - start - HEADER_SIZE):set_generated()
    root:add(field.body, tvb(start + HEADER_SIZE, stop - start - HEADER_SIZE))
    count, controls = count + 1, controls + tvb(start + 19, 1):uint() % 2
    start = stop
  end
  pinfo.cols.info = ("%d frames of a link, %d of them link control"):format(count, controls)
  return start
end

frames:register_heuristic("udp", function(tvb, pinfo, tree)
  if not begins(tvb, 0) then
    return false
  end
  frames.dissector(tvb, pinfo, tree)
  return true
end)
