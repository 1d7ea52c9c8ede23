#include "widgets/lessons/lesson_panel.h"

#include <algorithm>

#include <QApplication>
#include <QCoreApplication>
#include <QEvent>
#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QVBoxLayout>

#include "widgets/lessons/lesson_text.h"
#include "widgets/lessons/steady_scroll.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {

LessonPanel::LessonPanel(QWidget* parent) : QWidget(parent)
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    setAccessibleName(u"Lesson"_s);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    auto* head = new QVBoxLayout;
    head->setContentsMargins(18, 14, 18, 10);
    head->setSpacing(7);
    m_title = makeLabel({}, "title", this);
    m_title->setWordWrap(true);
    head->addWidget(m_title);
    m_crumbs = new QHBoxLayout;
    m_crumbs->setSpacing(2);
    head->addLayout(m_crumbs);
    layout->addLayout(head);
    auto* rule = new QFrame(this);
    rule->setObjectName(u"rule"_s);
    layout->addWidget(rule);
    m_scroll = new SteadyScroll(this);
    m_scroll->setWidgetResizable(true);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    layout->addWidget(m_scroll, 1);
    m_tools = new StepTools(this);
    m_tools->hide();
    auto* foot = new QWidget(this);
    auto* footLayout = new QVBoxLayout(foot);
    footLayout->setContentsMargins(18, 8, 18, 12);
    footLayout->setSpacing(6);
    m_reason = makeLabel({}, "secondary", foot);
    m_reason->setObjectName(u"nextReason"_s);
    m_reason->setAccessibleName(u"What Next waits for"_s);
    m_reason->setWordWrap(true);
    footLayout->addWidget(m_reason);
    auto* buttons = new QHBoxLayout;
    m_show = new QPushButton(u"Show the solution"_s, foot);
    m_show->setToolTip(u"Plays the solution and marks the step as shown, not done. To complete it, do it yourself "
                       "from the start or with another number of microbatches."_s);
    m_back = new QPushButton(u"Back"_s, foot);
    m_back->setToolTip(u"Previous step  (Alt+PgUp)"_s);
    m_next = new QPushButton(u"Next"_s, foot);
    m_next->setObjectName(u"primary"_s);
    buttons->addWidget(m_show);
    buttons->addStretch(1);
    buttons->addWidget(m_back);
    buttons->addWidget(m_next);
    footLayout->addLayout(buttons);
    auto* footRule = new QFrame(this);
    footRule->setObjectName(u"rule"_s);
    layout->addWidget(footRule);
    layout->addWidget(foot);
    connect(m_back, &QPushButton::clicked, this, [this] { emit pageAsked(m_page - 1); });
    connect(m_next, &QPushButton::clicked, this, [this] {
        if (m_page + 1 < static_cast<int>(m_pages.size()))
            emit pageAsked(m_page + 1);
        else
            emit finished();
    });
    connect(m_show, &QPushButton::clicked, this, [this] {
        const auto& blocks = m_pages[static_cast<std::size_t>(m_page)].blocks;
        for (std::size_t i = 0; i < blocks.size() && i < m_reading.blocks.size(); ++i) {
            if (m_reading.blocks[i].state == lessons::Verdict::Pass) continue;
            if (const auto* check = std::get_if<lessons::Check>(blocks[i]);
                check != nullptr && m_lesson->solutionOf(check->id) != nullptr) {
                emit showAsked(qs(check->id));
                return;
            }
            if (const auto* quiz = std::get_if<lessons::Quiz>(blocks[i]);
                quiz != nullptr && m_lesson->solutionOf(quiz->id) != nullptr) {
                emit showAsked(qs(quiz->id));
                return;
            }
        }
    });
}

void LessonPanel::setTheme(const Theme& theme)
{
    m_theme = &theme;
    if (m_lesson == nullptr) return;
    for (Row& row : m_rows) row.metersShown = u"?"_s;
    setReading(m_reading, m_state);
}

void LessonPanel::setPage(const lessons::Lesson* lesson, const std::vector<LessonPage>& pages, int page,
                          const lessons::Canvas& canvas)
{
    m_lesson = lesson;
    m_pages = pages;
    m_page = page;
    m_reading = {};
    m_linked.clear();
    m_open = -1;
    m_canvas = canvas;
    build();
    m_tools->setStep(nullptr, nullptr, {}, canvas); // until it is known what is asked
}

void LessonPanel::setCanvas(const lessons::Canvas& canvas)
{
    m_canvas = canvas;
    m_tools->setCanvas(canvas);
}

// Its own tools under the open question; under the last one, those of the step, once all are met.
void LessonPanel::placeTools()
{
    const LessonPage& now = m_pages[static_cast<std::size_t>(m_page)];
    const lessons::Step* step = now.part == lessons::Part::Do ? m_lesson->step(now.step) : nullptr;
    m_tools->setStep(m_lesson, step, m_reading.tools, m_canvas);
    m_tools->setWatched(m_reading.watched);
    auto* layout = static_cast<QVBoxLayout*>(m_body->layout());
    QWidget* under = nullptr;
    for (std::size_t i = 0; i < m_rows.size(); ++i)
        if (m_rows[i].card != nullptr && (m_reading.open < 0 || static_cast<int>(i) <= m_reading.open) &&
            m_rows[i].picture == nullptr)
            under = m_rows[i].card;
    const int at = under == nullptr ? -1 : layout->indexOf(under), is = layout->indexOf(m_tools);
    if (at < 0 || is == at + 1) return;
    layout->removeWidget(m_tools);
    layout->insertWidget(layout->indexOf(under) + 1, m_tools);
}

// A question's in stages, by the number of wrong answers.
QString LessonPanel::verdictOf(const lessons::Block& block, const BlockReading& now) const
{
    const auto* quiz = std::get_if<lessons::Quiz>(&block);
    if (quiz == nullptr) return now.verdict;
    const auto misses = m_state.misses.find(quiz->id);
    if (now.state != lessons::Verdict::Pass) return replyOf(now, misses == m_state.misses.end() ? 0 : misses->second);
    const auto said = m_state.said.find(quiz->id);
    if (said == m_state.said.end() || now.verdict.startsWith(qs(said->second))) return now.verdict;
    return u"**%1.** %2"_s.arg(qs(said->second), now.verdict);
}

void LessonPanel::build()
{
    m_rows.clear();
    m_tools->setParent(this); // not deleted with the page
    m_tools->hide();
    if (m_body != nullptr) delete m_scroll->takeWidget();
    m_body = new QWidget;
    m_body->setObjectName(u"panelBody"_s);
    auto* layout = new QVBoxLayout(m_body);
    layout->setContentsMargins(18, 12, 18, 12);
    layout->setSpacing(10);
    while (QLayoutItem* item = m_crumbs->takeAt(0)) {
        if (item->widget() != nullptr) item->widget()->deleteLater();
        delete item;
    }
    if (m_lesson == nullptr) {
        m_scroll->setWidget(m_body);
        return;
    }
    m_title->setText(m_lesson->number > 0 ? u"%1. %2"_s.arg(m_lesson->number).arg(qs(m_lesson->title))
                                          : qs(m_lesson->title));
    const lessons::Part part = m_pages[static_cast<std::size_t>(m_page)].part;
    m_guessCard = nullptr;
    m_guessesShown.clear();
    std::set<lessons::Part> shown;
    for (std::size_t i = 0; i < m_pages.size(); ++i) {
        if (!shown.insert(m_pages[i].part).second) continue;
        if (shown.size() > 1) m_crumbs->addWidget(makeLabel(u"·"_s, "faint", this));
        const bool here = m_pages[i].part == part;
        auto* crumb = new QPushButton(here ? m_pages[static_cast<std::size_t>(m_page)].title
                                           : qs(std::string(lessons::toText(m_pages[i].part))),
                                      this);
        crumb->setObjectName(here ? u"crumbHere"_s : u"crumb"_s);
        crumb->setToolTip(here ? u"You are here"_s : u"Go there; nothing is locked"_s);
        connect(crumb, &QPushButton::clicked, this, [this, i] { emit pageAsked(static_cast<int>(i)); });
        m_crumbs->addWidget(crumb);
    }
    m_crumbs->addStretch(1);
    m_runAll = nullptr;
    const auto isRun = [](const lessons::Block* block) { return std::holds_alternative<lessons::RunBlock>(*block); };
    const auto& all = m_pages[static_cast<std::size_t>(m_page)].blocks;
    const auto runs = std::count_if(all.begin(), all.end(), isRun);
    for (const lessons::Block* block : m_pages[static_cast<std::size_t>(m_page)].blocks) {
        if (runs > 1 && m_runAll == nullptr && isRun(block)) {
            m_runAll = new QPushButton(m_body);
            m_runAll->setObjectName(u"primary"_s);
            m_runAll->setToolTip(u"Trains them one after the other on this computer; can be cancelled"_s);
            connect(m_runAll, &QPushButton::clicked, this, [this] {
                if (m_state.running.isEmpty())
                    emit runAllAsked();
                else
                    emit cancelAsked();
            });
            layout->addWidget(m_runAll, 0, Qt::AlignLeft);
        }
        m_rows.push_back(buildBlock(*block, layout));
        if (m_runAll != nullptr && m_rows.back().run != nullptr) m_rows.back().run->setObjectName({});
    }
    layout->addWidget(m_tools);
    m_guessCard = new QFrame(m_body);
    m_guessCard->setObjectName(u"card"_s);
    m_guesses = new QVBoxLayout(m_guessCard);
    m_guesses->setContentsMargins(13, 11, 13, 12);
    m_guesses->setSpacing(7);
    m_guesses->addWidget(makeLabel(u"Your guess"_s, "title", m_guessCard));
    m_guessCard->hide();
    layout->addWidget(m_guessCard);
    layout->addStretch(1);
    m_scroll->setWidget(m_body);
    m_body->show();
    const bool last = m_page + 1 == static_cast<int>(m_pages.size());
    m_next->setText(last ? m_nextLesson : u"Next"_s);
    m_back->setEnabled(m_page > 0);
    bool solvable = false;
    for (const lessons::Block* block : m_pages[static_cast<std::size_t>(m_page)].blocks) {
        if (const auto* check = std::get_if<lessons::Check>(block))
            solvable = solvable || m_lesson->solutionOf(check->id) != nullptr;
        if (const auto* quiz = std::get_if<lessons::Quiz>(block))
            solvable = solvable || m_lesson->solutionOf(quiz->id) != nullptr;
    }
    m_show->setVisible(solvable);
}

double LessonPanel::expectedSeconds() const
{
    double all = 0;
    for (const lessons::Block* block : m_pages[static_cast<std::size_t>(m_page)].blocks)
        if (const auto* run = std::get_if<lessons::RunBlock>(block)) {
            const auto one = m_state.expected.find(run->id);
            if (one == m_state.expected.end() || one->second <= 0) return 0;
            all += one->second;
        }
    return all;
}

void LessonPanel::setReading(const PageReading& reading, const LessonState& state)
{
    m_reading = reading;
    m_state = state;
    if (m_lesson == nullptr) return;
    m_scroll->hold();
    const auto& blocks = m_pages[static_cast<std::size_t>(m_page)].blocks;
    for (std::size_t i = 0; i < m_rows.size() && i < reading.blocks.size(); ++i)
        showRow(m_rows[i], *blocks[i], reading.blocks[i]);
    placeTools();
    const bool another = m_open >= 0 && m_reading.open > m_open; // the next question, which may be below the fold
    m_open = m_reading.open;
    if (m_runAll != nullptr) {
        const auto count =
            std::count_if(m_rows.begin(), m_rows.end(), [](const Row& row) { return row.run != nullptr; });
        m_runAll->setText(state.running.isEmpty() ? withExpectedTime(u"Run all %1"_s.arg(count), expectedSeconds())
                                                  : u"Cancel"_s);
    }
    setRole(m_reason, "secondary");
    m_reason->setText(reading.missing.isEmpty() ? u"Alt+PgDown goes on"_s : sentence(reading.missing));
    setGuesses(reading.guesses);
    const bool done = reading.missing.isEmpty() && !m_next->isEnabled(); // by what was answered here: Return goes on
    m_next->setEnabled(reading.missing.isEmpty());
    m_next->setToolTip(reading.missing.isEmpty() ? u"Next  (Alt+PgDown)"_s : reading.missing);
    if (const QWidget* focus = QApplication::focusWidget(); done && focus != nullptr && m_body->isAncestorOf(focus))
        m_next->setFocus(Qt::OtherFocusReason);
    bool open = false;
    for (std::size_t i = 0; i < blocks.size() && i < reading.blocks.size(); ++i)
        open = open || ((std::holds_alternative<lessons::Check>(*blocks[i]) ||
                         std::holds_alternative<lessons::Quiz>(*blocks[i])) &&
                        reading.blocks[i].state != lessons::Verdict::Pass);
    m_show->setEnabled(open);
    // The page takes the height that its cards need now: theirs is not always passed on when texts and pictures come
    // and go.
    QMetaObject::invokeMethod(
        m_scroll,
        [this, another, body = QPointer<QWidget>(m_body), scroll = m_scroll] {
            if (body) {
                for (QWidget* part : body->findChildren<QWidget*>()) {
                    if (part->layout() != nullptr) part->layout()->invalidate();
                    part->updateGeometry(); // forgets the height it had
                }
                body->layout()->invalidate();
                QCoreApplication::postEvent(scroll, new QEvent(QEvent::LayoutRequest)); // it gives the page its height
            }
            QMetaObject::invokeMethod(
                scroll,
                [this, another, body,
                 scroll] { // after that: on a page that keeps its height no card has been laid out again
                    if (body) {
                        body->layout()->activate();
                        for (QWidget* part : body->findChildren<QWidget*>())
                            if (part->layout() != nullptr) part->layout()->activate();
                    }
                    scroll->release();
                    if (body && body == m_body && another) showOpen();
                },
                Qt::QueuedConnection);
        },
        Qt::QueuedConnection);
}

void LessonPanel::setGuesses(const std::vector<GuessReading>& guesses)
{
    if (m_guessCard == nullptr) return;
    QString key;
    for (const GuessReading& one : guesses) key += one.words + one.reveal + u'\n';
    if (key == m_guessesShown) return;
    m_guessesShown = key;
    while (m_guesses->count() > 1) { // the title stays
        QLayoutItem* item = m_guesses->takeAt(1);
        delete item->widget();
        delete item;
    }
    for (const GuessReading& one : guesses) {
        if (guesses.size() > 1) setProse(prose(m_guesses, "secondary"), one.ask);
        QLabel* words = prose(m_guesses, one.right ? "right" : "value");
        setProse(words, (one.right ? u"✓ "_s : QString()) + one.words);
        setProse(prose(m_guesses, "value"), one.reveal);
    }
    m_guessCard->setVisible(!guesses.empty());
}

// Brings the open question into view and the focus to it: the one above is answered.
void LessonPanel::showOpen()
{
    if (m_open < 0 || m_open >= static_cast<int>(m_rows.size())) return;
    QWidget* card = m_rows[static_cast<std::size_t>(m_open)].card;
    if (card == nullptr || !card->isVisibleTo(this)) return;
    m_scroll->ensureWidgetVisible(m_tools->isVisibleTo(this) ? static_cast<QWidget*>(m_tools) : card, 0, 12);
    m_scroll->ensureWidgetVisible(card, 0, 12);
    const QWidget* focus = QApplication::focusWidget();
    if (focus == nullptr || isAncestorOf(focus) || !focus->isVisible()) focusFirst();
}

void LessonPanel::focusFirst()
{
    QWidget* first = m_runAll != nullptr && m_runAll->isEnabled() && m_open < 0 ? m_runAll : nullptr;
    for (std::size_t i = static_cast<std::size_t>(std::max(0, m_open)); first == nullptr && i < m_rows.size(); ++i) {
        const Row& row = m_rows[i];
        QWidget* to = row.field != nullptr   ? static_cast<QWidget*>(row.field)
                      : !row.choices.empty() ? row.choices.front()
                      : row.run != nullptr   ? row.run
                                             : nullptr;
        if (to != nullptr && to->isVisibleTo(this) && to->isEnabled()) first = to;
    }
    if (first == nullptr && m_next->isEnabled()) first = m_next;
    if (first != nullptr)
        first->setFocus(Qt::OtherFocusReason);
    else
        emit keysNotUsed();
}

QString LessonPanel::nextReason() const { return m_reading.missing; }

void LessonPanel::stressReason() { setRole(m_reason, "worse"); }

QString LessonPanel::plainText() const
{
    QStringList words{m_title->text()};
    for (const GuessReading& guess : m_reading.guesses) words << plainWords(guess.words) << plainWords(guess.reveal);
    for (const BlockReading& block : m_reading.blocks) {
        if (block.waits) continue;
        const lessons::Block& of = *m_pages[static_cast<std::size_t>(m_page)]
                                        .blocks[static_cast<std::size_t>(&block - m_reading.blocks.data())];
        words << plainWords(block.text) << plainWords(verdictOf(of, block));
        for (const MeterReading& meter : block.meters)
            words << meter.subject + u' ' + meter.yours + u'/' + meter.needed;
    }
    words << m_reading.missing;
    words.removeAll(QString());
    return words.join(u'\n');
}

} // namespace stagewright
