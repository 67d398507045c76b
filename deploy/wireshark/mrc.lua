-- Wireshark and tshark read MRC packets with this: the uSID container in front, the entropy value, every header behind UDP.
--
-- Owns the display alone; layouts and names of values are in mrc_headers.lua, links between packets in mrc_links.lua, which
-- have to lie in the same folder. Install: see docs/PACKETS.md. Needs Wireshark 3.6 or later (Lua 5.1 to 5.4). Nothing here raises, whatever the bytes are: each read
-- stays within what was captured.
--
-- MRC 1.0 7.5 (order of headers, lengths), RFC 8754 (SRH), IBTA annex A17 (what the ICRC covers).

local mrc = Proto("mrc", "Multipath Reliable Connection")

local wire, links = require("mrc_headers"), require("mrc_links")
local OPCODES, OPS, VALUES, headers, hexadecimal = wire.OPCODES, wire.OPS, wire.VALUES, wire.headers, wire.hexadecimal
local ENDPOINT_QP, NACK_UNEXPECTED, TICK_NS = 2, 0x19, 128
local ICRC_SIZE, IPV6_SIZE, UDP_SIZE, SRH_SIZE = 4, 40, 8, 24
local MRC_CLASS = 6

-- Settings of a fabric that the bytes do not tell.

local prefs = mrc.prefs
prefs.ports = Pref.range("UDP ports", "4791,4971", "Destination ports that carry MRC", 65535)
prefs.roce = Pref.bool("Leave other opcodes to RoCEv2", true, "Opcodes outside MRC's transport class are RoCEv2's")
prefs.port_high = Pref.bool("Source port is the high half of the EV", false, "wire.ev_order = port_high")
prefs.op_shift = Pref.uint("Bits to the right of the endpoint response's op", 2, "wire.eeth_op_shift: 0, 2 or 4")
prefs.links = Pref.uint("Packets remembered for links to their answers", 65536, "0: none")
prefs.icrc = Pref.bool("Check the ICRC", false, "Of packets that are whole and not trimmed")
local ROLES = { "trimmable", "no_trim", "trimmable_retx", "trimmed", "trimmed_lasthop", "control" }
local CODE_POINTS = { 4, 0, 8, 12, 16, 46 }
for index, role in ipairs(ROLES) do
  prefs["dscp_" .. role] = Pref.uint("DSCP of " .. role, CODE_POINTS[index], "dscp." .. role)
end

-- Fields: those of the headers, and what follows from them.

local made = {
  ev = ProtoField.uint32("mrc.ev", "Entropy value", base.HEX),
  class = ProtoField.string("mrc.class", "Traffic class"),
  trimmed = ProtoField.bool("mrc.trimmed", "Trimmed"),
  missing = ProtoField.uint32("mrc.missing", "Bytes cut off"),
  payload = ProtoField.bytes("mrc.payload", "Payload"),
  payload_bytes = ProtoField.uint32("mrc.payload_bytes", "Payload length"),
  payload_sent = ProtoField.uint32("mrc.payload_bytes_sent", "Payload length before it was trimmed"),
  padding = ProtoField.bytes("mrc.padding", "Padding"),
  icrc = ProtoField.uint32("mrc.icrc", "ICRC", base.HEX),
  icrc_good = ProtoField.bool("mrc.icrc_good", "ICRC good"),
  reserved = ProtoField.string("mrc.reserved", "Reserved bits that are set"),
  malformed = ProtoField.string("mrc.malformed", "Malformed"),
  acked_psn = ProtoField.uint32("mrc.seth.acked_psn", "Acknowledged PSN"),
  probe_id = ProtoField.uint32("mrc.seth.probe_id", "Probe answered"),
  base_psn = ProtoField.uint32("mrc.seth.base_psn", "PSN of bit 0"),
  received = ProtoField.uint32("mrc.seth.received", "Received PSN"),
  request = ProtoField.uint32("mrc.request_id", "Request"),
}
local expert = {
  malformed = ProtoExpert.new("mrc.expert.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
  icrc = ProtoExpert.new("mrc.expert.icrc", "Wrong ICRC", expert.group.CHECKSUM, expert.severity.ERROR),
  reserved = ProtoExpert.new("mrc.expert.reserved", "Reserved bits are set", expert.group.PROTOCOL, expert.severity.NOTE),
  trimmed = ProtoExpert.new("mrc.expert.trimmed", "Trimmed by a switch", expert.group.SEQUENCE, expert.severity.WARN),
  marked = ProtoExpert.new("mrc.expert.marked", "Congestion experienced", expert.group.SEQUENCE, expert.severity.NOTE),
  rtx = ProtoExpert.new("mrc.expert.rtx", "Sent again", expert.group.SEQUENCE, expert.severity.NOTE),
  nack = ProtoExpert.new("mrc.expert.nack", "Wanted again", expert.group.SEQUENCE, expert.severity.WARN),
  fatal = ProtoExpert.new("mrc.expert.fatal", "Ends the QP", expert.group.SEQUENCE, expert.severity.ERROR),
  port_status = ProtoExpert.new("mrc.expert.port_status", "Ports have changed", expert.group.SEQUENCE, expert.severity.NOTE),
  skip = ProtoExpert.new("mrc.expert.skip", "The EV is to be skipped", expert.group.SEQUENCE, expert.severity.NOTE),
}
local declared, experts = {}, {}
for _, list in ipairs({ wire.fields, links.fields, made }) do
  for _, field in pairs(list) do
    declared[#declared + 1] = field
  end
end
for _, one in pairs(expert) do
  experts[#experts + 1] = one
end
mrc.fields, mrc.experts = declared, experts

local seen = {
  plen = Field.new("ipv6.plen"), flow = Field.new("ipv6.flow"), dscp = Field.new("ipv6.tclass.dscp"),
  ecn = Field.new("ipv6.tclass.ecn"), nxt = Field.new("ipv6.nxt"), udp = Field.new("udp.length"),
  frame = Field.new("frame.len"), ipv6 = Field.new("ipv6"), datagram = Field.new("udp"),
}

-- The n-th value of a field in this packet, negative from the end; nil when there is none.
local function value_of(extractor, index)
  local found = { extractor() }
  local info = found[index > 0 and index or #found + 1 + index]
  return info and info.value
end

-- nil when the headers cannot be had.
local function icrc_of(tvb)
  local ipv6, udp = { seen.ipv6() }, { seen.datagram() }
  local inner, datagram = ipv6[#ipv6], udp[#udp]
  if not inner or not datagram or not inner.range or not datagram.range or inner.range:len() < IPV6_SIZE or datagram.range:len() < UDP_SIZE then
    return nil
  end
  local body = tvb(0, tvb:captured_len() - ICRC_SIZE):raw()
  return wire.icrc(inner.range(0, IPV6_SIZE):raw(), datagram.range(0, UDP_SIZE):raw(), body)
end

-- One header as a subtree: every field, and what is odd about it. Returns a table of its values.
local function show(header, tvb, start, tree)
  local range = tvb(start, header.size)
  local branch = tree:add(range, header.title)
  local values, items = {}, {}
  for _, row in ipairs(header.rows) do
    if row.field then
      items[row.name] = branch:add(row.field, range(math.floor(row.bit / 8), row.bytes))
      if row.bits <= 32 then
        values[row.name] = range:bitfield(row.bit, row.bits)
      end
    else
      for bit = row.bit, row.bit + row.bits - 1, 16 do
        local width = math.min(16, row.bit + row.bits - bit)
        if range:bitfield(bit, width) ~= 0 then
          local text = ("%s bit %d"):format(header.title, row.bit)
          branch:add(made.reserved, range(math.floor(bit / 8), 1), text):add_proto_expert_info(expert.reserved)
          break
        end
      end
    end
  end
  if values.tx_timestamp and values.tsr ~= 1 then
    items.tx_timestamp:append_text((" (%d ns, modulo 2^23)"):format(values.tx_timestamp * TICK_NS))
  end
  return values, items, branch, range
end

-- What follows from the fields of a header, and its share of the info column.
local FOLLOWS = {}

function FOLLOWS.RETH(values)
  return (", %d bytes in all"):format(values.dma_len)
end

function FOLLOWS.AETH(values, items)
  if values.syndrome ~= 0x1F then
    items.syndrome:add_proto_expert_info(expert.fatal)
  end
  return (", %d messages"):format(values.msn)
end

function FOLLOWS.SETH(values, items, branch, range)
  local base_psn = (values.cack_psn + wire.signed(values.sack_offset)) % 2 ^ 24
  local text = (", cack %d"):format(values.cack_psn)
  if values.pr == 1 then
    branch:add(made.probe_id, range(2, 2), values.ack_psn_offset):set_generated()
    text = text .. (", answers probe %d"):format(values.ack_psn_offset)
  else
    local acked = (values.cack_psn + wire.signed(values.ack_psn_offset)) % 2 ^ 24
    branch:add(made.acked_psn, range(2, 2), acked):set_generated()
    text = text .. (", acks %d"):format(acked)
  end
  branch:add(made.base_psn, range(18, 2), base_psn):set_generated()
  local count = 0
  for index = 0, 63 do
    if range:bitfield(20 * 8 + 63 - index, 1) == 1 then
      count = count + 1
      branch:add(made.received, range(20, 8), (base_psn + index) % 2 ^ 24):set_generated()
    end
  end
  items.sack_bitmap:append_text((" (%d received, bit 0 is PSN %d)"):format(count, base_psn))
  items.mpr:append_text(values.mpr == 0 and " (not dynamic)" or (" (%d PSNs)"):format(values.mpr * 128))
  items.rcvd_bytes:append_text((" (%d bytes)"):format(values.rcvd_bytes * 256))
  if values.m == 1 or values.m == 2 then
    items.m:add_proto_expert_info(expert.skip)
    text = text .. ", " .. VALUES["SETH.m"][values.m] .. " " .. hexadecimal(values.entropy, 8)
  end
  return count == 0 and text or text .. (", %d received from %d on"):format(count, base_psn)
end

function FOLLOWS.NETH(values, items)
  local unexpected = values.nack_reason == NACK_UNEXPECTED
  items.nack_reason:add_proto_expert_info(unexpected and expert.fatal or expert.nack)
  local reason = VALUES["NETH.nack_reason"][values.nack_reason] or ("reason %d"):format(values.nack_reason)
  return (", %s PSN %d EV %s"):format(reason, values.nack_psn, hexadecimal(values.entropy, 8))
end

function FOLLOWS.PETH(values)
  return (", probe %d"):format(values.probe_id)
end

function FOLLOWS.ERTH(values, items, _, range)
  if values.op ~= 0 then
    return ", " .. OPS[values.op]
  end
  local text = wire.ports_of(range)
  items.port_status_mask:append_text(" (ports that can be reached: " .. text .. ")")
  items.port_status_mask:add_proto_expert_info(expert.port_status, "Ports that can be reached: " .. text)
  return ", Port Status Update, ports " .. text
end

function FOLLOWS.EETH(values)
  return ", " .. OPS[values.op]
end

-- What the lengths in front say: bytes of UDP payload as sent, how many of them are missing, how many bytes there are too
-- many, and whether the lengths contradict one another.
local function lengths(tvb)
  local plens = { seen.plen() }
  local udp, frame = value_of(seen.udp, -1), value_of(seen.frame, 1)
  if #plens == 0 or not udp or not frame or udp < UDP_SIZE then
    return tvb:reported_len(), 0, 0, true
  end
  local outer, inner = plens[1].value, plens[#plens].value
  local tunnel = #plens > 1 and IPV6_SIZE + (value_of(seen.nxt, 1) == 43 and SRH_SIZE or 0) or 0
  local rest = IPV6_SIZE + outer - frame
  return udp - UDP_SIZE, math.max(0, rest), math.max(0, -rest), inner ~= udp or outer ~= udp + tunnel
end

-- A trimmed packet is known by the code point of its outer header alone.
local function class_of(root, tvb)
  local dscp, role = value_of(seen.dscp, 1), "other"
  for _, name in ipairs(ROLES) do
    role = prefs["dscp_" .. name] == dscp and name or role
  end
  local trimmed = role == "trimmed" or role == "trimmed_lasthop"
  root:add(made.class, tvb(0, 0), role):set_generated()
  local item = root:add(made.trimmed, tvb(0, 0), trimmed):set_generated()
  if trimmed then
    item:add_proto_expert_info(expert.trimmed)
  end
  if value_of(seen.ecn, 1) == 3 then
    root:add_proto_expert_info(expert.marked)
  end
  return trimmed
end

-- MRC 1.0 7.5.5: the EV is striped over the flow label of the inner header and the UDP source port.
local function ev_of(root, tvb, source_port)
  local flow = (value_of(seen.flow, -1) or 0) % 2 ^ 16
  local ev = prefs.port_high and source_port * 2 ^ 16 + flow or flow * 2 ^ 16 + source_port
  root:add(made.ev, tvb(0, 0), ev):set_generated()
  return ev
end

-- The headers behind UDP. Returns the BTH's values, where the payload starts (nil: not all are there), the info column's
-- share, and why it is no good packet.
local function show_headers(tvb, root)
  local there, start, info = tvb:captured_len(), 0, ""
  local bth
  local function take(name)
    local header = headers[name]
    if start + header.size > there then
      local cut = start + header.size <= tvb:reported_len()
      root:append_text(cut and " [the capture left out the rest]" or "")
      return nil, cut and "cut" or "truncated"
    end
    local values, items, branch, range = show(header, tvb, start, root)
    info = info .. (FOLLOWS[header.title] and FOLLOWS[header.title](values, items, branch, range) or "")
    start = start + header.size
    return values, nil, items, branch
  end

  local values, lacking, items, branch = take("BTH")
  if not values then
    return nil, nil, info, lacking
  end
  bth = values
  local row = OPCODES[bth.opcode]
  local data = row ~= nil and row[2] == "METH"
  items.qp:append_text(bth.qp == ENDPOINT_QP and " (endpoint operations)" or (" (%d)"):format(bth.qp))
  if bth.qp == ENDPOINT_QP then
    branch:add(made.request, tvb(10, 2), bth.psn % 2 ^ 16):set_generated()
  end
  if data and bth.rtx == 1 then
    items.rtx:add_proto_expert_info(expert.rtx)
  end
  if not row or (bth.ts == 1 and not data) then
    return bth, nil, info, "opcode"
  end
  for index = 2, #row do
    local name = row[index]
    if name ~= "TSETH" or bth.ts == 1 then
      values, lacking = take(headers[name .. prefs.op_shift] and name .. prefs.op_shift or name)
      if not values then
        return bth, nil, info, bth.tver ~= 0 and "tver" or lacking
      end
    end
  end
  return bth, start, info, bth.tver ~= 0 and "tver" or nil, values
end

-- Payload, padding and ICRC, against the lengths; returns why they do not fit.
local function show_contents(tvb, root, bth, start, trimmed, sent, missing, extra)
  local there = tvb:captured_len()
  local size = sent - start - ICRC_SIZE - bth.pad_count
  local data = OPCODES[bth.opcode][2] == "METH"
  if extra > 0 then
    return "length"
  elseif missing > 0 and not trimmed then
    return "truncated"
  elseif missing == 0 and not trimmed then
    if size < 0 or (not data and (size > 0 or bth.pad_count > 0)) then
      return "length"
    elseif (size + bth.pad_count) % 4 ~= 0 then
      return "padding"
    end
  end
  local kept = math.min(math.max(0, size), there - start)
  if data then
    local carried = math.min(math.max(0, size), tvb:reported_len() - start)
    root:add(made.payload_bytes, tvb(start, kept), carried):set_generated()
    if carried < size then
      root:add(made.payload_sent, tvb(start, kept), size):set_generated()
    end
  end
  if kept > 0 then
    root:add(made.payload, tvb(start, kept))
  end
  if missing > 0 or size < 0 or there < tvb:reported_len() or there < start + size + bth.pad_count + ICRC_SIZE then
    return nil
  end
  if bth.pad_count > 0 then
    root:add(made.padding, tvb(start + size, bth.pad_count))
  end
  local range = tvb(there - ICRC_SIZE, ICRC_SIZE)
  local item = root:add(made.icrc, range)
  local sum = prefs.icrc and not trimmed and icrc_of(tvb)
  if sum then
    local good = sum == range:uint()
    root:add(made.icrc_good, range, good):set_generated()
    if not good then
      item:add_proto_expert_info(expert.icrc, "Wrong ICRC, it should be " .. hexadecimal(sum, 8))
      return "icrc"
    end
  end
  return nil
end

local roce

function mrc.dissector(tvb, pinfo, tree)
  if tvb:captured_len() == 0 then
    return 0
  end
  if prefs.roce and roce and math.floor(tvb(0, 1):uint() / 32) ~= MRC_CLASS then
    -- What it cannot read it has noted itself.
    local read, used = pcall(roce.call, roce, tvb, pinfo, tree)
    return read and used or tvb:captured_len()
  end
  pinfo.cols.protocol = "MRC"
  local root = tree:add(mrc, tvb())
  local trimmed = class_of(root, tvb)
  local ev = ev_of(root, tvb, pinfo.src_port)
  local sent, missing, extra, wrong = lengths(tvb)
  if missing > 0 then
    root:add(made.missing, tvb(0, 0), missing):set_generated()
  end
  local bth, start, info, reason, last = show_headers(tvb, root)
  if start and not reason then
    links.show(root, pinfo, bth, last, prefs)
    reason = show_contents(tvb, root, bth, start, trimmed, sent, missing, extra)
  end
  reason = wrong and "length" or reason
  if reason and reason ~= "cut" then
    root:add(made.malformed, tvb(0, 0), reason):add_proto_expert_info(expert.malformed, "Malformed: " .. reason)
  end
  local summary = "no BTH"
  if bth then
    local flags = (bth.a == 1 and " a" or "") .. (bth.rtx == 1 and " rtx" or "") .. (bth.ts == 1 and " ts" or "")
    local what = OPCODES[bth.opcode] and OPCODES[bth.opcode][1] or "opcode " .. hexadecimal(bth.opcode)
    local place = ("to QP %s, PSN %d, EV %s"):format(hexadecimal(bth.qp), bth.psn, hexadecimal(ev, 8))
    summary = (trimmed and "trimmed " or "") .. what .. " " .. place .. flags .. info
  end
  root:append_text(": " .. summary)
  pinfo.cols.info = summary .. ((reason and reason ~= "cut") and " [" .. reason .. "]" or "")
  return tvb:captured_len()
end

-- Which packets are ours: by destination port. The source port is half of an EV and may be any number, also one that is
-- well known for something else, which the table of ports would prefer: so a heuristic looks first.

local ports = DissectorTable.get("udp.port")
roce = ports:get_dissector(4791)
ports:set(prefs.ports, mrc)

mrc.init = links.reset

function mrc.prefs_changed()
  ports:set(prefs.ports, mrc)
end

local function is_ours(tvb, pinfo, tree)
  local found = ports:get_dissector(pinfo.dst_port)
  if tvb:captured_len() == 0 or tostring(found) ~= tostring(Dissector.get("mrc")) then
    return false
  end
  mrc.dissector(tvb, pinfo, tree)
  return true
end

mrc:register_heuristic("udp", is_ours)
if set_preference then
  set_preference("udp.try_heuristic_first", true)
  -- RoCEv2 sends no checksum.
  set_preference("udp.ignore_ipv6_zero_checksum", true)
end
