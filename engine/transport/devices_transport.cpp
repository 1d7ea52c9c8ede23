#include "engine/transport/devices_transport.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

namespace stagewright {

namespace {

// Ends in one batch: as many as NCCL works at side by side for one peer, whatever their order.
constexpr std::size_t largestBatch = 8;

class Devices final : public ProcessesTransport {
public:
    Devices(std::unique_ptr<ProcessesTransport> said, const std::vector<DeviceRank>& ranks,
            std::vector<std::byte> connection, const std::vector<PostedMessage>& messages)
        : m_connection(std::move(connection)), m_ranks(ranks.size()), m_said(std::move(said))
    {
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) m_ranks[rank].here = ranks[rank];
        for (const PostedMessage& message : messages) {
            rankOf(message.fromRank).add(message, message.toRank, true);
            rankOf(message.toRank).add(message, message.fromRank, false);
        }
    }

    std::string_view name() const override { return m_said->name(); }

    void open(int rank) override
    {
        const Rank& own = rankOf(rank);
        std::set<int> to;
        std::set<int> from;
        for (const End& end : own.list) (end.sends ? to : from).insert(end.peer);
        const std::vector<int> sendsTo(to.begin(), to.end());
        const std::vector<int> receivesFrom(from.begin(), from.end());
        own.here.end->join(m_connection, rank, static_cast<int>(m_ranks.size()), sendsTo, receivesFrom);
    }

    void send(int fromRank, int toRank, const MessageKey& key, Buffer message, Nanos availableAt) override
    {
        Rank& own = rankOf(fromRank);
        const std::size_t at = own.placeOf(key, true);
        End& end = own.list[at];
        if (message.size() != end.floats)
            throw std::logic_error("a message has a different length from what its receiver expects");
        end.mark = message.memory().mark();
        end.buffer = std::move(message);
        // Said first: the receiver posts its end once it knows.
        m_said->send(fromRank, toRank, key, own.words.take(1, messageTag(key.stage, key.microbatch)), availableAt);
        postUntil(own, at + 1);
    }

    void offer(int rank, const MessageKey& key) override { m_said->offer(rank, key); }
    TransportStatus waitSent(int toRank, const MessageKey& key) override { return m_said->waitSent(toRank, key); }
    bool ready(int rank, const MessageKey& key) const override { return m_said->ready(rank, key); }

    // What comes before it in the order is posted first: other ranks may wait for that, and this message for them.
    TransportStatus wait(int rank, const MessageKey& key) override
    {
        Rank& own = rankOf(rank);
        std::size_t until = own.next;
        for (const std::size_t end = own.placeOf(key, false); until < end; ++until)
            if (own.list[until].sends && !own.list[until].buffer) break; // in lists that wait for themselves
        postUntil(own, until);
        return m_said->wait(rank, key);
    }

    Buffer take(int rank, const MessageKey& key, Allocator& allocator) override
    {
        Rank& own = rankOf(rank);
        m_said->take(rank, key, own.words).reset();
        const std::size_t at = own.placeOf(key, false);
        postUntil(own, at + 1);
        End& end = own.list[at];
        Buffer buffer = std::move(end.buffer);
        allocator.memory().await(std::exchange(end.mark, nullptr));
        own.received += static_cast<Bytes>(buffer.size() * sizeof(float));
        return buffer;
    }

    void post(int toRank, const ControlKey& key, Buffer message, Nanos availableAt) override
    {
        m_said->post(toRank, key, std::move(message), availableAt);
    }
    Buffer collect(int rank, const ControlKey& key, Allocator& allocator, const MemoryTag& tag) override
    {
        return m_said->collect(rank, key, allocator, tag);
    }
    bool collectInto(int rank, const ControlKey& key, Memory& memory, std::span<float> to, Nanos& arrived) override
    {
        return m_said->collectInto(rank, key, memory, to, arrived);
    }
    bool hasCome(int rank, const ControlKey& key) override { return m_said->hasCome(rank, key); }

    ReceivedBytes received(int rank) const override
    {
        ReceivedBytes all = m_said->received(rank);
        all.messages = m_ranks[static_cast<std::size_t>(rank)].received;
        return all;
    }

    std::optional<SentMessage> giveBack(int rank) override
    {
        while (std::optional<SentMessage> said = m_said->giveBack(rank)) {
            if (said->control) return said;
            said->buffer.reset();
        }
        Rank& own = rankOf(rank);
        if (own.sent.empty()) return std::nullopt;
        SentMessage message = std::move(own.sent.back());
        own.sent.pop_back();
        message.buffer.readUntil(std::exchange(message.read, nullptr));
        return message;
    }

    bool settle(int rank) override
    {
        rankOf(rank).next = 0; // the next step's
        return m_said->settle(rank);
    }
    void interrupt() override { m_said->interrupt(); }
    Nanos pump(Nanos now) override { return m_said->pump(now); }

private:
    struct End {
        MessageKey key;
        int peer = 0;
        bool sends = false;
        std::size_t floats = 0;
        Buffer buffer; // sent: until it is posted; received: from then on until it is taken
        Mark mark;     // of the buffer: the data is there
    };
    // What one rank posts in a step, in order; of its thread.
    struct Rank {
        DeviceRank here;
        std::vector<End> list;
        std::map<std::pair<bool, MessageKey>, std::size_t> places;
        std::size_t next = 0; // what has been posted of it
        std::vector<SentMessage> sent;
        Bytes received = 0;
        Allocator words; // of what is said; counted nowhere

        void add(const PostedMessage& message, int peer, bool sends)
        {
            places[{sends, message.key}] = list.size();
            End& end = list.emplace_back();
            end.key = message.key;
            end.peer = peer;
            end.sends = sends;
            end.floats = message.floats;
        }
        std::size_t placeOf(const MessageKey& key, bool sends) const { return places.at({sends, key}); }
    };

    Rank& rankOf(int rank) { return m_ranks[static_cast<std::size_t>(rank)]; }

    static void postUntil(Rank& own, std::size_t end)
    {
        while (own.next < end) {
            const std::size_t begin = own.next;
            own.next = std::min(end, begin + largestBatch);
            postBatch(own, std::span(own.list).subspan(begin, own.next - begin));
        }
    }

    static void postBatch(Rank& own, std::span<End> ends)
    {
        std::vector<EndMessage> batch;
        for (End& end : ends) {
            EndMessage message{end.sends, end.peer, nullptr, end.floats * sizeof(float)};
            if (end.sends) {
                if (!end.buffer) throw std::logic_error("a message is to be sent before it is made");
                message.written = end.mark;
            } else {
                end.buffer = own.here.allocator->takeForCopy(end.floats, messageTag(end.key.stage, end.key.microbatch),
                                                             message.before);
            }
            message.data = end.buffer.data();
            batch.push_back(std::move(message));
        }
        const Mark gone = own.here.end->exchange(batch);
        for (End& end : ends) {
            end.mark = end.sends ? nullptr : gone;
            if (end.sends) own.sent.push_back({end.key, std::move(end.buffer), false, {}, gone});
        }
    }

    std::vector<std::byte> m_connection;
    std::vector<Rank> m_ranks;
    std::unique_ptr<ProcessesTransport> m_said; // goes first: it has buffers of the ranks
};

} // namespace

std::unique_ptr<ProcessesTransport> makeDevicesTransport(std::unique_ptr<ProcessesTransport> said,
                                                         const std::vector<DeviceRank>& ranks,
                                                         std::vector<std::byte> connection,
                                                         const std::vector<PostedMessage>& messages)
{
    return std::make_unique<Devices>(std::move(said), ranks, std::move(connection), messages);
}

} // namespace stagewright
