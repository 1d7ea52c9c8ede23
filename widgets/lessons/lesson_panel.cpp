#include "widgets/lessons/lesson_panel.h"

#include <algorithm>
#include <cmath>

#include <QButtonGroup>
#include <QComboBox>
#include <QCoreApplication>
#include <QEvent>
#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPainter>
#include <QPointer>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "widgets/lessons/lesson_text.h"
#include "widgets/lessons/steady_scroll.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

// One comparison of a goal: a tick or a cross, both numbers, and the distance.
class MeterRow : public QWidget {
public:
    MeterRow(const MeterReading& reading, const Theme& theme, QWidget* parent) : QWidget(parent), m_reading(reading), m_theme(theme)
    {
        QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Minimum);
        policy.setHeightForWidth(true);
        setSizePolicy(policy);
        setAccessibleName(LessonPanel::tr("%1: %2, %3").arg(reading.subject, reading.needed.isEmpty() ? reading.yours : LessonPanel::tr("%1 of %2").arg(reading.yours, reading.needed), reading.holds ? LessonPanel::tr("met") : LessonPanel::tr("not met")));
        setToolTip(reading.needed.isEmpty() ? reading.subject : LessonPanel::tr("goal: %1 %2 %3; now: %4").arg(reading.subject, reading.sign, reading.needed, reading.yours));
    }

    // The subject wraps beside the numbers, which stand on the right edge.
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override { return words(width) + below(width) + (m_reading.share >= 0 ? 12 : 2); }
    QSize sizeHint() const override { return {200, heightForWidth(std::max(200, width()))}; }
    QSize minimumSizeHint() const override { return {80, 24}; }

protected:
    void paintEvent(QPaintEvent*) override
    {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        const int tall = words(width()) + below(width());
        const QColor colour = m_reading.holds ? m_theme.better : m_theme.secondary;
        const QPointF c(8, 11);
        if (m_reading.holds) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(colour);
            painter.drawEllipse(c, 7, 7);
            painter.setPen(QPen(m_theme.dark ? m_theme.canvas : m_theme.onAccent, 1.7, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
            painter.drawPolyline(QPolygonF{{c.x() - 3, c.y() + 0.2}, {c.x() - 0.8, c.y() + 2.6}, {c.x() + 3.3, c.y() - 2.6}});
        } else {
            painter.setPen(QPen(colour, 1.4));
            painter.drawEllipse(c, 6.5, 6.5);
        }
        painter.setFont(fontOf(FontRole::Body));
        painter.setPen(m_theme.text);
        painter.drawText(QRectF(22, 3, width() - 22 - beside(width()), tall), Qt::AlignTop | Qt::AlignLeft | Qt::TextWordWrap, m_reading.subject);
        painter.setFont(fontOf(FontRole::Strong));
        painter.drawText(QRectF(22, 3 + (below(width()) > 0 ? words(width()) - 4 : 0), width() - 22, tall), Qt::AlignTop | Qt::AlignRight, numbers());
        if (m_reading.share < 0) return;
        const QRectF groove(22, tall + 2, width() - 22, 5);
        painter.setPen(Qt::NoPen);
        painter.setBrush(m_theme.track);
        painter.drawRoundedRect(groove, 2.5, 2.5);
        painter.setBrush(m_reading.holds ? m_theme.better : m_theme.accent);
        // The goal is at three quarters, so that an excess is visible.
        const double full = groove.width() * 0.75;
        painter.drawRoundedRect(QRectF(groove.left(), groove.top(), std::clamp(m_reading.share * full, 5.0, groove.width()), groove.height()), 2.5, 2.5);
        painter.setBrush(m_theme.text);
        painter.drawRect(QRectF(groove.left() + full - 0.75, groove.top() - 3, 1.5, groove.height() + 6));
    }

private:
    QString numbers() const
    {
        if (m_reading.needed.isEmpty() || m_reading.said) return {}; // a sentence says it; the tooltip has the numbers
        if (m_reading.sign == QLatin1String("<=")) return m_reading.yours + QStringLiteral(" / ") + m_reading.needed;
        return LessonPanel::tr("%1 · goal %2").arg(m_reading.yours, sign() + m_reading.needed);
    }
    int numbersWide() const { return numbers().isEmpty() ? 0 : QFontMetrics(fontOf(FontRole::Strong)).horizontalAdvance(numbers()) + 12; }
    // Numbers that leave the subject no room go below it.
    bool stacked(int width) const { return numbersWide() > (width - 22) * 3 / 5; }
    int beside(int width) const { return stacked(width) ? 0 : numbersWide(); }
    int below(int width) const { return stacked(width) ? QFontMetrics(fontOf(FontRole::Strong)).height() : 0; }
    int words(int width) const // their height
    {
        const QRect room(0, 0, std::max(40, width - 22 - beside(width)), 10000);
        return std::max(22, QFontMetrics(fontOf(FontRole::Body)).boundingRect(room, Qt::TextWordWrap, m_reading.subject).height() + 4);
    }
    QString sign() const
    {
        if (m_reading.sign == QLatin1String("==")) return {};
        if (m_reading.sign == QLatin1String(">=")) return QStringLiteral("≥ ");
        if (m_reading.sign == QLatin1String("<=")) return QStringLiteral("≤ ");
        if (m_reading.sign == QLatin1String("~")) return QStringLiteral("≈ ");
        return m_reading.sign + QLatin1Char(' ');
    }
    MeterReading m_reading;
    const Theme& m_theme;
};

// Of what can be answered or run; others: none.
QString idOf(const lessons::Block& block)
{
    if (const auto* predict = std::get_if<lessons::Predict>(&block)) return qs(predict->id);
    if (const auto* check = std::get_if<lessons::Check>(&block)) return qs(check->id);
    if (const auto* quiz = std::get_if<lessons::Quiz>(&block)) return qs(quiz->id);
    if (const auto* run = std::get_if<lessons::RunBlock>(&block)) return qs(run->id);
    return {};
}

QString keyOf(const std::vector<MeterReading>& meters)
{
    QString key;
    for (const MeterReading& one : meters) key += one.subject + one.yours + one.sign + one.needed + (one.holds ? u'1' : u'0');
    return key;
}

} // namespace

LessonPanel::LessonPanel(QWidget* parent) : QWidget(parent)
{
    setObjectName(QStringLiteral("panel"));
    setAttribute(Qt::WA_StyledBackground);
    setAccessibleName(tr("Lesson"));
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
    rule->setObjectName(QStringLiteral("rule"));
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
    m_reason->setObjectName(QStringLiteral("nextReason"));
    m_reason->setAccessibleName(tr("Why Next is disabled"));
    m_reason->setWordWrap(true);
    footLayout->addWidget(m_reason);
    auto* buttons = new QHBoxLayout;
    m_show = new QPushButton(tr("Show the solution"), foot);
    m_show->setToolTip(tr("Plays the solution and marks the step as shown, not done. To complete it, do it yourself from the start or with another number of microbatches."));
    m_back = new QPushButton(tr("Back"), foot);
    m_back->setToolTip(tr("Previous step  (Ctrl+Alt+Left)"));
    m_next = new QPushButton(tr("Next"), foot);
    m_next->setObjectName(QStringLiteral("primary"));
    buttons->addWidget(m_show);
    buttons->addStretch(1);
    buttons->addWidget(m_back);
    buttons->addWidget(m_next);
    footLayout->addLayout(buttons);
    auto* footRule = new QFrame(this);
    footRule->setObjectName(QStringLiteral("rule"));
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
            if (const auto* check = std::get_if<lessons::Check>(blocks[i]); check != nullptr && m_lesson->solutionOf(check->id) != nullptr) {
                emit showAsked(qs(check->id));
                return;
            }
            if (const auto* quiz = std::get_if<lessons::Quiz>(blocks[i]); quiz != nullptr && m_lesson->solutionOf(quiz->id) != nullptr) {
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
    for (Row& row : m_rows) row.metersShown = QStringLiteral("?");
    setReading(m_reading, m_state);
}

void LessonPanel::setPage(const lessons::Lesson* lesson, const std::vector<LessonPage>& pages, int page, const lessons::Canvas& canvas)
{
    m_lesson = lesson;
    m_pages = pages;
    m_page = page;
    m_reading = {};
    m_linked.clear();
    build();
    if (lesson != nullptr) {
        const LessonPage& now = m_pages[static_cast<std::size_t>(m_page)];
        const bool canvasMatters = now.part == lessons::Part::Do;
        m_tools->setStep(lesson, canvasMatters ? lesson->step(now.step) : nullptr, canvas);
    }
}

void LessonPanel::build()
{
    m_rows.clear();
    m_tools->setParent(this); // not deleted with the page
    m_tools->hide();
    if (m_body != nullptr) delete m_scroll->takeWidget();
    m_body = new QWidget;
    m_body->setObjectName(QStringLiteral("panelBody"));
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
    m_title->setText(m_lesson->number > 0 ? tr("%1. %2").arg(m_lesson->number).arg(qs(m_lesson->title)) : qs(m_lesson->title));
    const lessons::Part part = m_pages[static_cast<std::size_t>(m_page)].part;
    m_guessCard = nullptr;
    m_guessesShown.clear();
    std::set<lessons::Part> shown;
    for (std::size_t i = 0; i < m_pages.size(); ++i) {
        if (!shown.insert(m_pages[i].part).second) continue;
        if (shown.size() > 1) m_crumbs->addWidget(makeLabel(QStringLiteral("·"), "faint", this));
        const bool here = m_pages[i].part == part;
        auto* crumb = new QPushButton(here ? m_pages[static_cast<std::size_t>(m_page)].title : qs(std::string(lessons::toText(m_pages[i].part))), this);
        crumb->setObjectName(here ? QStringLiteral("crumbHere") : QStringLiteral("crumb"));
        crumb->setToolTip(here ? tr("You are here") : tr("Go there; nothing is locked"));
        connect(crumb, &QPushButton::clicked, this, [this, i] { emit pageAsked(static_cast<int>(i)); });
        m_crumbs->addWidget(crumb);
    }
    m_crumbs->addStretch(1);
    m_runAll = nullptr;
    const auto isRun = [](const lessons::Block* block) { return std::holds_alternative<lessons::RunBlock>(*block); };
    const auto& all = m_pages[static_cast<std::size_t>(m_page)].blocks;
    const auto runs = std::count_if(all.begin(), all.end(), isRun);
    bool toolsPlaced = false;
    for (const lessons::Block* block : m_pages[static_cast<std::size_t>(m_page)].blocks) {
        if (runs > 1 && m_runAll == nullptr && isRun(block)) {
            m_runAll = new QPushButton(m_body);
            m_runAll->setObjectName(QStringLiteral("primary"));
            m_runAll->setToolTip(tr("Trains them one after the other on this computer; can be cancelled"));
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
        if (!toolsPlaced && std::holds_alternative<lessons::Check>(*block)) {
            layout->addWidget(m_tools);
            toolsPlaced = true;
        }
    }
    if (!toolsPlaced) layout->addWidget(m_tools);
    m_guessCard = new QFrame(m_body);
    m_guessCard->setObjectName(QStringLiteral("card"));
    m_guesses = new QVBoxLayout(m_guessCard);
    m_guesses->setContentsMargins(13, 11, 13, 12);
    m_guesses->setSpacing(7);
    m_guesses->addWidget(makeLabel(tr("Your guess"), "title", m_guessCard));
    m_guessCard->hide();
    layout->addWidget(m_guessCard);
    layout->addStretch(1);
    m_scroll->setWidget(m_body);
    m_body->show();
    const bool last = m_page + 1 == static_cast<int>(m_pages.size());
    m_next->setText(last ? m_nextLesson : tr("Next"));
    m_back->setEnabled(m_page > 0);
    bool solvable = false;
    for (const lessons::Block* block : m_pages[static_cast<std::size_t>(m_page)].blocks) {
        if (const auto* check = std::get_if<lessons::Check>(block)) solvable = solvable || m_lesson->solutionOf(check->id) != nullptr;
        if (const auto* quiz = std::get_if<lessons::Quiz>(block)) solvable = solvable || m_lesson->solutionOf(quiz->id) != nullptr;
    }
    m_show->setVisible(solvable);
}

QLabel* LessonPanel::prose(QVBoxLayout* layout, const char* role)
{
    QLabel* label = makeLabel({}, role, m_body);
    label->setWordWrap(true);
    label->setTextFormat(Qt::RichText);
    label->setTextInteractionFlags(Qt::TextBrowserInteraction);
    connect(label, &QLabel::linkActivated, this, [this](const QString& link) {
        if (link.startsWith(QLatin1String("term:"))) emit termAsked(link.mid(5));
    });
    label->hide();
    layout->addWidget(label);
    return label;
}

void LessonPanel::setProse(QLabel* label, const QString& markdown)
{
    if (label == nullptr) return;
    if (label->property("source").toString() == markdown && !label->text().isEmpty() == !markdown.isEmpty()) return;
    label->setProperty("source", markdown);
    // Terms are linked in the lesson's own text, once per page; verdicts and hints come and go.
    const bool links = label->property("role").toString() == QLatin1String("value") && label->property("linked").toBool();
    label->setText(lessonHtml(markdown, links ? &m_linked : nullptr));
    QPalette colours = label->palette();
    colours.setColor(QPalette::Link, m_theme->secondary);
    label->setPalette(colours);
    label->setAccessibleName(plainWords(markdown));
    label->setVisible(!markdown.isEmpty());
}

void LessonPanel::buildAnswer(Row& row, QVBoxLayout* layout, const std::string& id, const std::vector<std::string>& choices, const QString& unit)
{
    auto* line = new QWidget(m_body);
    auto* flow = choices.size() > 3 ? static_cast<QBoxLayout*>(new QVBoxLayout(line)) : new QHBoxLayout(line);
    flow->setContentsMargins(0, 0, 0, 0);
    flow->setSpacing(6);
    if (choices.empty()) {
        row.field = new QLineEdit(line);
        row.field->setMaximumWidth(150);
        row.field->setAccessibleName(tr("Your answer"));
        row.field->setToolTip(tr("A number, or several separated by spaces; press Enter to answer"));
        flow->addWidget(row.field);
        if (!unit.isEmpty() && unit != QLatin1String("mark")) flow->addWidget(makeLabel(unit, "secondary", line));
        auto* give = new QPushButton(tr("Answer"), line);
        flow->addWidget(give);
        auto answer = [this, id = qs(id), field = row.field] {
            if (!field->text().trimmed().isEmpty()) emit said(id, field->text().trimmed());
        };
        connect(row.field, &QLineEdit::returnPressed, this, answer);
        connect(give, &QPushButton::clicked, this, answer);
    } else {
        auto* group = new QButtonGroup(line);
        for (const std::string& choice : choices) {
            auto* button = new QPushButton(qs(choice), line);
            button->setCheckable(true);
            group->addButton(button);
            flow->addWidget(button, 0, Qt::AlignLeft);
            row.choices.push_back(button);
            connect(button, &QPushButton::clicked, this, [this, id = qs(id), choice = qs(choice)] { emit said(id, choice); });
        }
    }
    flow->addStretch(1);
    layout->addWidget(line);
}

LessonPanel::Row LessonPanel::buildBlock(const lessons::Block& block, QVBoxLayout* layout)
{
    Row row;
    auto goalCard = [&](const QString& title) {
        auto* card = new QFrame(m_body);
        card->setObjectName(QStringLiteral("card"));
        card->setProperty("block", idOf(block));
        row.card = card;
        auto* inner = new QVBoxLayout(card);
        inner->setContentsMargins(13, 11, 13, 12);
        inner->setSpacing(7);
        if (!title.isEmpty()) inner->addWidget(makeLabel(title, "title", card));
        layout->addWidget(card);
        return inner;
    };
    auto withHints = [&](QVBoxLayout* inner, const std::string& id) {
        row.hints = new QVBoxLayout;
        row.hints->setSpacing(5);
        inner->addLayout(row.hints);
        row.hint = new QPushButton(m_body);
        row.hint->setObjectName(QStringLiteral("link"));
        connect(row.hint, &QPushButton::clicked, this, [this, id] { emit hintAsked(qs(id)); });
        inner->addWidget(row.hint, 0, Qt::AlignLeft);
        row.hint->hide();
    };
    if (std::holds_alternative<lessons::Prose>(block)) {
        row.text = prose(layout);
        row.text->setProperty("linked", true);
    } else if (const auto* predict = std::get_if<lessons::Predict>(&block)) {
        QVBoxLayout* inner = goalCard(tr("Your guess"));
        row.text = prose(inner);
        buildAnswer(row, inner, predict->id, predict->choices, qs(predict->unit));
        row.verdict = prose(inner, row.plain = "secondary");
    } else if (const auto* check = std::get_if<lessons::Check>(&block)) {
        QVBoxLayout* inner = goalCard(check->graded ? tr("Goal") : tr("For comparison"));
        row.text = prose(inner);
        row.meters = new QWidget(m_body);
        auto* meters = new QVBoxLayout(row.meters);
        meters->setContentsMargins(0, 2, 0, 0);
        meters->setSpacing(2);
        inner->addWidget(row.meters);
        row.formula = prose(inner, "formula");
        row.verdict = prose(inner, "value");
        withHints(inner, check->id);
    } else if (const auto* quiz = std::get_if<lessons::Quiz>(&block)) {
        QVBoxLayout* inner = goalCard(tr("Question"));
        row.text = prose(inner);
        buildAnswer(row, inner, quiz->id, quiz->choices, {});
        row.verdict = prose(inner, "value");
        withHints(inner, quiz->id);
    } else if (const auto* run = std::get_if<lessons::RunBlock>(&block)) {
        QVBoxLayout* inner = goalCard(m_lesson->all<lessons::RunBlock>().size() > 1 ? blockWords(run->id) : tr("On this computer"));
        std::string command = "stagewright record";
        for (const std::string& one : run->arguments) command += ' ' + one;
        QString settings = recordedWords(*run);
        if (!settings.isEmpty()) settings[0] = settings.at(0).toUpper();
        auto* what = makeLabel(settings, "secondary", m_body, true);
        what->setWordWrap(true);
        what->setToolTip(tr("In a terminal: %1").arg(qs(command)));
        inner->addWidget(what);
        row.text = prose(inner);
        auto* line = new QHBoxLayout;
        row.run = new QPushButton(tr("Run it for real"), m_body);
        row.run->setObjectName(QStringLiteral("primary"));
        row.run->setToolTip(tr("Trains a small model under these schedules on this computer, for a few seconds to a minute; can be cancelled"));
        row.open = new QPushButton(tr("Open the run"), m_body);
        row.open->setToolTip(tr("Its timeline, bubbles by cause and memory"));
        line->addWidget(row.run);
        line->addWidget(row.open);
        line->addStretch(1);
        inner->addLayout(line);
        const QString id = qs(run->id);
        connect(row.run, &QPushButton::clicked, this, [this, id] {
            if (m_state.running == id)
                emit cancelAsked();
            else
                emit runAsked(id);
        });
        connect(row.open, &QPushButton::clicked, this, [this, id] { emit runOpened(id); });
        row.progress = new QProgressBar(m_body);
        row.progress->setTextVisible(false);
        row.progress->hide();
        inner->addWidget(row.progress);
        row.verdict = prose(inner, "secondary");
        row.meters = new QWidget(m_body);
        auto* meters = new QVBoxLayout(row.meters);
        meters->setContentsMargins(0, 2, 0, 0);
        meters->setSpacing(2);
        inner->addWidget(row.meters);
        row.note = prose(inner, "value");
        connect(row.note, &QLabel::linkActivated, this, [this, id](const QString& link) {
            if (link == QLatin1String("proof")) emit checkAsked(id);
        });
    } else if (const auto* figure = std::get_if<lessons::Figure>(&block)) {
        QVBoxLayout* inner = goalCard(tr("Save figure"));
        row.picture = new QLabel(m_body);
        row.picture->setAccessibleName(tr("The figure as it will be saved"));
        inner->addWidget(row.picture);
        row.caption = new QLineEdit(m_body);
        row.caption->setAccessibleName(tr("Caption"));
        row.caption->setToolTip(tr("Text under the figure, before the schedule, the costs and the source of the numbers"));
        inner->addWidget(row.caption);
        auto* line = new QHBoxLayout;
        auto* format = new QComboBox(m_body);
        format->setAccessibleName(tr("Format"));
        for (const char* one : {"SVG", "PDF", "PNG"}) format->addItem(QString::fromLatin1(one));
        auto* keep = new QPushButton(tr("Save figure…"), m_body);
        line->addWidget(format);
        line->addWidget(keep);
        line->addStretch(1);
        inner->addLayout(line);
        connect(keep, &QPushButton::clicked, this, [this, file = qs(figure->file), format, caption = row.caption] {
            emit figureAsked(file, format->currentText().toLower(), caption->text());
        });
        row.verdict = prose(inner, "secondary");
    }
    return row;
}

void LessonPanel::setMeters(Row& row, const std::vector<MeterReading>& meters)
{
    if (row.meters == nullptr) return;
    const QString key = keyOf(meters);
    if (key == row.metersShown) return;
    row.metersShown = key;
    QLayout* layout = row.meters->layout();
    while (QLayoutItem* item = layout->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    for (const MeterReading& meter : meters) layout->addWidget(new MeterRow(meter, *m_theme, row.meters));
    row.meters->setVisible(!meters.empty());
}

void LessonPanel::setReading(const PageReading& reading, const LessonState& state)
{
    m_reading = reading;
    m_state = state;
    if (m_lesson == nullptr) return;
    m_scroll->hold();
    const auto& blocks = m_pages[static_cast<std::size_t>(m_page)].blocks;
    for (std::size_t i = 0; i < m_rows.size() && i < reading.blocks.size(); ++i) {
        Row& row = m_rows[i];
        const BlockReading& now = reading.blocks[i];
        setProse(row.text, now.waits && std::holds_alternative<lessons::Prose>(*blocks[i]) ? QString() : now.text);
        if (row.card != nullptr) row.card->setVisible(!now.waits);
        const std::string id = idOf(*blocks[i]).toStdString();
        // A verdict only if there is something to judge.
        QString verdict = now.verdict;
        const bool passed = now.state == lessons::Verdict::Pass;
        const bool solved = passed && state.shown.count(id) > 0; // by the program
        setProse(row.formula, passed ? now.formula : QString()); // it would give the answer away
        if (std::holds_alternative<lessons::Predict>(*blocks[i])) {
            if (passed && reading.guesses.empty()) verdict = tr("Saved: you will see it again beside the answer.");
        } else if (solved) {
            verdict = tr("**Shown**, not done. Restart the step and do it yourself, or do it with another number of microbatches.") + QStringLiteral("\n\n") + verdict;
        } else if (passed && !now.medal.isEmpty()) {
            verdict = tr("**%1.** %2").arg(now.medal.at(0).toUpper() + now.medal.mid(1), verdict);
        }
        if (row.run == nullptr && row.picture == nullptr) {
            const bool graded = std::holds_alternative<lessons::Check>(*blocks[i]) || std::holds_alternative<lessons::Quiz>(*blocks[i]);
            const bool open = std::holds_alternative<lessons::Check>(*blocks[i]) && (!state.touched || now.unfinished);
            const bool failed = graded && now.state == lessons::Verdict::Fail && !open;
            if (open && !passed && !state.touched) verdict.clear();
            if (graded && !solved && !verdict.isEmpty() && (passed || failed)) verdict.prepend(passed ? QStringLiteral("✓ ") : QStringLiteral("✗ "));
            setProse(row.verdict, verdict);
            if (row.verdict != nullptr) setRole(row.verdict, passed && graded && !solved ? "right" : failed ? "wrong"
                                                                                                            : row.plain);
        }
        if (row.field != nullptr || !row.choices.empty()) {
            const auto said = state.said.find(id);
            const QString words = said == state.said.end() ? QString() : qs(said->second);
            if (row.field != nullptr && !row.field->hasFocus()) row.field->setText(words);
            for (QPushButton* choice : row.choices) choice->setChecked(choice->text() == words);
        }
        if (row.run == nullptr) setMeters(row, now.meters);
        if (row.hint != nullptr) {
            const auto hints = reading.hints.find(id);
            const int count = hints == reading.hints.end() ? 0 : static_cast<int>(hints->second.size());
            const auto given = state.hints.find(id);
            const int shown = std::min(count, given == state.hints.end() ? 0 : given->second);
            row.hint->setVisible(count > shown && !passed);
            row.hint->setText(tr("Hint %1 of %2").arg(shown + 1).arg(count));
            row.hint->setToolTip(shown + 1 == count ? tr("Makes one move for you  (Ctrl+Alt+H)") : tr("First a pointer, then the principle, then one move  (Ctrl+Alt+H)"));
            if (shown != row.hintsShown) {
                row.hintsShown = shown;
                while (QLayoutItem* item = row.hints->takeAt(0)) {
                    delete item->widget();
                    delete item;
                }
                for (int k = 0; k < shown; ++k) setProse(prose(row.hints, "secondary"), tr("*Hint %1:* ").arg(k + 1) + hints->second[static_cast<std::size_t>(k)]);
            }
        }
        if (row.run != nullptr) {
            const bool running = state.running == qs(id);
            const bool fresh = now.goals.empty() || now.state == lessons::Verdict::Open;
            row.run->setText(running ? tr("Cancel") : !fresh            ? tr("Run it again")
                                                  : m_runAll != nullptr ? tr("Run this one")
                                                                        : tr("Run it for real"));
            row.run->setEnabled(running || state.running.isEmpty());
            row.open->setVisible(!running && now.state != lessons::Verdict::Open);
            row.progress->setVisible(running);
            row.progress->setRange(0, state.runningShare < 0 ? 0 : 100);
            if (state.runningShare >= 0) row.progress->setValue(state.runningShare);
            std::vector<MeterReading> goals;
            QStringList said;
            for (const BlockReading& goal : now.goals) {
                if (now.state == lessons::Verdict::Open && goal.state == lessons::Verdict::Open) continue;
                if (!goal.text.isEmpty()) { // the sentence has the numbers that matter
                    MeterReading meter = goal.meters.empty() ? MeterReading() : goal.meters.front();
                    meter.said = true;
                    meter.subject = plainWords(goal.text);
                    meter.holds = goal.state == lessons::Verdict::Pass;
                    meter.share = -1;
                    goals.push_back(meter);
                }
                if (!goal.verdict.isEmpty() && goal.state != lessons::Verdict::Pass) said << goal.verdict;
            }
            setMeters(row, goals);
            QString words = running ? state.runningWords : said.join(QStringLiteral("\n\n"));
            if (!running && now.state == lessons::Verdict::Fail) words = tr("**Not as predicted.** ") + words;
            setProse(row.verdict, words);
            const auto note = state.notes.find(id);
            setProse(row.note, note == state.notes.end() ? QString() : note->second);
        }
        if (row.picture != nullptr) {
            const auto* figure = std::get_if<lessons::Figure>(blocks[i]);
            const auto picture = state.figures.find(figure->file);
            row.picture->setVisible(picture != state.figures.end());
            if (picture != state.figures.end()) {
                row.picture->setPixmap(picture->second);
                row.picture->setFixedSize(picture->second.deviceIndependentSize().toSize());
            }
            if (row.caption->text().isEmpty()) {
                row.caption->setText(plainWords(now.text));
                row.caption->setCursorPosition(0); // its start is what one reads
            }
            setProse(row.verdict, now.verdict);
        }
    }
    if (m_runAll != nullptr) {
        const auto count = std::count_if(m_rows.begin(), m_rows.end(), [](const Row& row) { return row.run != nullptr; });
        m_runAll->setText(state.running.isEmpty() ? tr("Run all %1").arg(count) : tr("Cancel"));
    }
    m_reason->setText(reading.missing.isEmpty() ? QString() : reading.missing.at(0).toUpper() + reading.missing.mid(1));
    setGuesses(reading.guesses);
    m_next->setEnabled(reading.missing.isEmpty());
    m_next->setToolTip(reading.missing.isEmpty() ? tr("Next  (Ctrl+Alt+Right)") : reading.missing);
    bool open = false;
    for (std::size_t i = 0; i < blocks.size() && i < reading.blocks.size(); ++i)
        open = open || ((std::holds_alternative<lessons::Check>(*blocks[i]) || std::holds_alternative<lessons::Quiz>(*blocks[i])) && reading.blocks[i].state != lessons::Verdict::Pass);
    m_show->setEnabled(open);
    // The page takes the height that its cards need now: theirs is not always passed on when texts and pictures come and go.
    QMetaObject::invokeMethod(
        m_scroll, [body = QPointer<QWidget>(m_body), scroll = m_scroll] {
            if (body) {
                for (QWidget* part : body->findChildren<QWidget*>()) {
                    if (part->layout() != nullptr) part->layout()->invalidate();
                    part->updateGeometry(); // forgets the height it had
                }
                body->layout()->invalidate();
                QCoreApplication::postEvent(scroll, new QEvent(QEvent::LayoutRequest)); // it gives the page its height
            }
            QMetaObject::invokeMethod(
                scroll, [body, scroll] { // after that: on a page that keeps its height no card has been laid out again
                    if (body) {
                        body->layout()->activate();
                        for (QWidget* part : body->findChildren<QWidget*>())
                            if (part->layout() != nullptr) part->layout()->activate();
                    }
                    scroll->release();
                },
                Qt::QueuedConnection);
        },
        Qt::QueuedConnection);
}

void LessonPanel::setGuesses(const std::vector<GuessReading>& guesses)
{
    if (m_guessCard == nullptr) return;
    QString key;
    for (const GuessReading& one : guesses) key += one.words + one.reveal + QLatin1Char('\n');
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
        setProse(words, (one.right ? QStringLiteral("✓ ") : QString()) + one.words);
        setProse(prose(m_guesses, "value"), one.reveal);
    }
    m_guessCard->setVisible(!guesses.empty());
}

void LessonPanel::focusFirst()
{
    if (m_runAll != nullptr && m_runAll->isEnabled()) return m_runAll->setFocus(Qt::OtherFocusReason);
    for (const Row& row : m_rows) {
        QWidget* to = row.field != nullptr ? static_cast<QWidget*>(row.field) : !row.choices.empty() ? row.choices.front()
                                                                            : row.run != nullptr     ? row.run
                                                                                                     : nullptr;
        if (to != nullptr && to->isVisibleTo(this) && to->isEnabled()) {
            to->setFocus(Qt::OtherFocusReason);
            return;
        }
    }
}

QString LessonPanel::nextReason() const { return m_reading.missing; }

QString LessonPanel::plainText() const
{
    QStringList words{m_title->text()};
    for (const GuessReading& guess : m_reading.guesses) words << plainWords(guess.words) << plainWords(guess.reveal);
    for (const BlockReading& block : m_reading.blocks) {
        if (block.waits) continue;
        words << plainWords(block.text) << plainWords(block.verdict);
        for (const MeterReading& meter : block.meters) words << meter.subject + QLatin1Char(' ') + meter.yours + QLatin1Char('/') + meter.needed;
    }
    words << m_reading.missing;
    words.removeAll(QString());
    return words.join(QLatin1Char('\n'));
}

} // namespace stagewright
